"""Files of predictions: adapter-bert's `test_results.tsv` and the GLUE server's."""

import os

from adapter_bert_tf import storage
from adapter_bert_tf.runners.classification.result_names import raw_of
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.task_types import table_type


def write_predictions(folder, task, split, indices, predicted, before=""):
    """Writes adapter-bert's `test_results.tsv` and the file that the GLUE server takes.

    Args:
      folder: `--output_dir`.
      task: `Task`.
      split: `test`, or another test split, whose name then follows `test_results`.
      indices: the examples' names.
      predicted: float `[examples, labels]` probabilities, or `[examples]` scores.
      before: what the name of the former begins with.
    """
    kind = table_type(task.task_type)
    rows = predicted.reshape(len(predicted), -1).tolist()
    raw = os.path.join(folder, f"{before}{raw_of(split)}.tsv")
    storage.write_text(raw, "".join("\t".join(map(str, row)) + "\n" for row in rows))
    lines = [
        f"{i}\t{printable(label)}"
        for i, label in zip(indices, kind.written(task, predicted), strict=True)
    ]
    path = os.path.join(folder, f"{task.submission(split)}.tsv")
    storage.write_text(path, "\n".join(["index\tprediction", *lines]) + "\n")
    print(f"Predictions: {path}, {kind.raw_outputs}: {raw}", flush=True)


def print_predictions(task, examples, predicted, rows=6):
    """Prints the first few predictions."""
    kind = table_type(task.task_type)
    written = kind.written(task, predicted[:rows])
    for label, row, texts in zip(written, predicted, examples.texts(), strict=False):
        shown = f"  {label}{kind.certainty(row)}  {' | '.join(text[:200] for text in texts)}"
        print(printable(shown))
