"""What a run leaves in `--output_dir`; each file is written whole or not at all."""

import hashlib
import importlib.metadata
import json
import os
import resource
import shlex
import sys

import tensorflow as tf

import adapter_bert_tf

PACKAGES = ("tensorflow", "tensorflow-text", "tf-models-official", "tf-keras", "numpy")


def write_text(path, text):
    """Writes a text file under a temporary name, then renames it."""
    tf.io.gfile.makedirs(os.path.dirname(path))
    temporary = f"{path}.tmp"
    with tf.io.gfile.GFile(temporary, "w") as file:
        file.write(text)
    tf.io.gfile.rename(temporary, path, overwrite=True)


def write_eval_results(folder, results):
    """Writes `eval_results.txt` and prints the block that adapter-bert prints."""
    lines = [f"{name} = {value}" for name, value in sorted(results.items())]
    write_text(os.path.join(folder, "eval_results.txt"), "\n".join(lines) + "\n")
    print("\n".join(["***** Eval results *****", *(f"  {line}" for line in lines)]), flush=True)


def write_predictions(folder, task, indices, probabilities):
    """Writes adapter-bert's `test_results.tsv` and the file that the GLUE server takes."""
    rows = "".join("\t".join(map(str, row)) + "\n" for row in probabilities.tolist())
    write_text(os.path.join(folder, "test_results.tsv"), rows)
    labels = [task.labels[i] for i in probabilities.argmax(-1)]
    lines = [f"{i}\t{label}" for i, label in zip(indices, labels, strict=True)]
    path = os.path.join(folder, f"{task.title}.tsv")
    write_text(path, "\n".join(["index\tprediction", *lines]) + "\n")
    print(f"Predictions: {path}, probabilities: {folder}/test_results.tsv", flush=True)


def print_predictions(task, examples, probabilities, rows=6):
    """Prints the first few predictions."""
    for i in range(min(rows, len(examples))):
        best = probabilities[i].argmax()
        texts = [examples.text_a[i], *([examples.text_b[i]] if examples.text_b else [])]
        print(f"  {task.labels[best]} ({probabilities[i][best]:.2f})  {' | '.join(texts)}")


def write_run(folder, values, trained):
    """Writes `run.json`, all that another run needs to repeat this one.

    A run that did not train is added under `later_runs` if the training's record is there.
    """
    path = os.path.join(folder, "run.json")
    if not trained and tf.io.gfile.exists(path):
        with tf.io.gfile.GFile(path) as file:
            training = json.load(file)
        values = training | {"later_runs": [*training.get("later_runs", []), values]}
    write_text(path, json.dumps(values, indent=2) + "\n")


def versions():
    """Dict from package to installed version, Python's and ours among them."""
    ours = {"python": sys.version.split()[0], "adapter_bert_tf": adapter_bert_tf.__version__}
    return ours | {name: importlib.metadata.version(name) for name in PACKAGES}


def command():
    """The command line of this process."""
    return shlex.join(["python", *sys.argv])


def file_digest(path):
    """SHA-256 of a file, local or gs://."""
    with tf.io.gfile.GFile(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def peak_memory_mb():
    """Largest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
