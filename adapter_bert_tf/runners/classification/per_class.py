"""What an evaluation says of each class: precision, recall, F1, and what it is taken for."""

import csv
import io
import os
from collections.abc import Sequence

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.data.labels import is_known
from adapter_bert_tf.runners.classification.result_names import after_split
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.tasks.metrics import SURE

HEADER = ["label", "precision", "recall", "f1", "examples"]
MOST_SHOWN = 20  # Classes; the file has all.
LONGEST = 24  # Characters of a label on the screen.


def class_table(labels: Sequence[str], ids: np.ndarray, predicted: np.ndarray) -> list[list[str]]:
    """Rows of a table with a header: a class each, in the order of the labels' ids.

    Args:
      labels: strings.
      ids: int `[examples]`, the true ones.
      predicted: int `[examples]`.
    """
    from sklearn import metrics

    every = list(range(len(labels)))
    numbers = metrics.precision_recall_fscore_support(
        ids, predicted, labels=every, zero_division=0.0
    )
    counts = metrics.confusion_matrix(ids, predicted, labels=every).tolist()
    rows = zip(_rows(labels, numbers), counts, strict=True)
    header = [*HEADER, *(f"as {label}" for label in labels)]
    return [header, *([*row, *map(str, as_other)] for row, as_other in rows)]


def label_table(labels: Sequence[str], truth: np.ndarray, predicted: np.ndarray) -> list[list[str]]:
    """The same of labels that an example may have any number of; there is no confusion of these.

    Args:
      labels: strings.
      truth: `[examples, labels]`, 1 for each that the example has.
      predicted: probabilities, float `[examples, labels]`.
    """
    from sklearn import metrics

    numbers = metrics.precision_recall_fscore_support(
        truth.astype(int), (predicted >= SURE).astype(int), zero_division=0.0
    )
    return [HEADER, *_rows(labels, numbers)]


def _rows(labels, numbers):
    return [
        [label, f"{p:.4f}", f"{r:.4f}", f"{f:.4f}", str(int(n))]  # They may be floats.
        for label, p, r, f, n in zip(labels, *numbers, strict=True)
    ]


def format_table(title: str, table: list[list[str]]) -> str:
    """The table as text, with what classes are taken for only where there is room for it.

    Args:
      title: of what it is.
      table: rows with a header, as of `of_each_class`.
    """
    width = len(table[0]) if len(table) <= 9 else 5
    rows = [[printable(cell)[:LONGEST] for cell in row[:width]] for row in table[: MOST_SHOWN + 1]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    more = len(table) - 1 - MOST_SHOWN
    return "\n".join(
        [title, *(f"  {line}" for line in lines)] + [f"  and {more} more"] * (more > 0)
    )


def write(
    folder: str, before: str, task: ClassificationData, predictions: dict[str, np.ndarray]
) -> None:
    """Writes and prints the table of each evaluated split of a task of classes.

    Args:
      folder: `--output_dir`.
      before: what the files' names begin with.
      task: `ClassificationData`.
      predictions: dict from split to probabilities, float `[examples, labels]`.
    """
    for split, predicted in predictions.items():
        ids = task.labels[split]
        if task.task.regression or ids is None:
            continue
        title = f"Classes of {task.shown(split)}, and what they were taken for:"
        known = is_known(ids)
        if task.task.multi_label:
            title = f"Labels of {task.shown(split)}:"
            table = label_table(task.labels_in_order, ids, predicted)
        else:
            table = class_table(task.labels_in_order, ids[known], predicted[known].argmax(-1))
        name = after_split(f"{before}eval_classes", split)
        path = os.path.join(folder, f"{name}.tsv")
        storage.write_text(path, _tsv(table))
        print(format_table(title, table), flush=True)


def _tsv(table):
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(table)
    return text.getvalue()
