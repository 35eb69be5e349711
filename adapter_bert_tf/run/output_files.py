"""What a run leaves in `--output_dir`; each file is written whole or not at all."""

import fnmatch
import json
import os
import resource
import shlex
import sys

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.received import parse_json, printable


def remove(folder, patterns):
    """Removes the files in `folder` that match one of the patterns."""
    for name in storage.listdir(folder) if storage.isdir(folder) else []:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            storage.remove(os.path.join(folder, name))


def read_record(path):
    """The JSON object in a file; None if it is not there or damaged."""
    if not storage.exists(path):
        return None
    try:
        record = parse_json(storage.read_bytes(path))
    except (ValueError, tf.errors.OpError):  # The latter of a folder.
        return None
    return record if isinstance(record, dict) else None


def write_eval_results(folder, results):
    """Writes `eval_results.txt` and prints the block that adapter-bert prints."""
    write_metrics(folder, "eval_results.txt", "Eval results", results)


def write_metrics(folder, file, title, results):
    """Writes one metric a line, and prints them under a title."""
    lines = [f"{name} = {value}" for name, value in sorted(results.items())]
    storage.write_text(os.path.join(folder, file), "\n".join(lines) + "\n")
    print("\n".join([f"***** {title} *****", *(f"  {line}" for line in lines)]), flush=True)


def write_predictions(folder, task, split, indices, predicted):
    """Writes adapter-bert's `test_results.tsv` and the file that the GLUE server takes.

    Args:
      folder: `--output_dir`.
      task: `Task`.
      split: `test`, or another test split, whose name then follows `test_results`.
      indices: the examples' names.
      predicted: float `[examples, labels]` probabilities, or `[examples]` scores.
    """
    rows = predicted.reshape(len(predicted), -1).tolist()
    raw = os.path.join(folder, f"{split.replace('test', 'test_results')}.tsv")
    storage.write_text(raw, "".join("\t".join(map(str, row)) + "\n" for row in rows))
    lines = [
        f"{i}\t{printable(label)}"
        for i, label in zip(indices, _written(task, predicted), strict=True)
    ]
    path = os.path.join(folder, f"{task.submission(split)}.tsv")
    storage.write_text(path, "\n".join(["index\tprediction", *lines]) + "\n")
    print(
        f"Predictions: {path}, {'scores' if task.regression else 'probabilities'}: {raw}",
        flush=True,
    )


def _written(task, predicted):
    """Predictions as GLUE wants them: label strings, or scores within their range."""
    if task.regression:
        return [f"{score:.3f}" for score in task.clip(predicted)]
    return [task.labels[i] for i in predicted.argmax(-1)]


def print_predictions(task, examples, predicted, rows=6):
    """Prints the first few predictions."""
    written = _written(task, predicted[:rows])
    for label, row, texts in zip(written, predicted, examples.texts(), strict=False):
        sure = "" if task.regression else f" ({row.max():.2f})"
        print(printable(f"  {label}{sure}  {' | '.join(text[:200] for text in texts)}"))


def write_run(folder, values, trained):
    """Writes `run.json`, all that another run needs to repeat this one.

    A run that did not train is added under `later_runs` if the training's record is there.
    """
    path = os.path.join(folder, "run.json")
    training = None if trained else read_record(path)
    if training:
        earlier = training.get("later_runs")
        earlier = earlier if isinstance(earlier, list) else []
        values = training | {"later_runs": [*earlier, values]}
    storage.write_text(path, json.dumps(values, indent=2) + "\n")


def command():
    """The command line of this process, as text that any file can hold."""
    return shlex.join(["python", *sys.argv]).encode("utf-8", "backslashreplace").decode()


def peak_memory_mb():
    """Largest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
