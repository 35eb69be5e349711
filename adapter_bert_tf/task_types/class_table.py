"""Precision, recall and F1 of each label, and the confusion of classes: `eval_classes.tsv`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

HEADER = ["label", "precision", "recall", "f1", "examples"]


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
    """The same for label sets, which have no confusion.

    Args:
      labels: strings.
      truth, predicted: int `[examples, labels]`, 1 for each label of an example.
    """
    from sklearn import metrics

    numbers = metrics.precision_recall_fscore_support(truth, predicted, zero_division=0.0)
    return [HEADER, *_rows(labels, numbers)]


def _rows(labels: Sequence[str], numbers: Any) -> list[list[str]]:
    return [
        [label, f"{p:.4f}", f"{r:.4f}", f"{f:.4f}", str(int(n))]  # They may be floats.
        for label, p, r, f, n in zip(labels, *numbers, strict=True)
    ]
