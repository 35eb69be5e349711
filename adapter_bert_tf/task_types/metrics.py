"""Metrics of scikit-learn and scipy by name, and their table by label: `eval_classes.tsv`."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Metric: TypeAlias = Callable[[np.ndarray, np.ndarray], Any]  # Of labels and predictions.
HEADER = ["label", "precision", "recall", "f1", "examples"]


def label_metric(name: str, **options: Any) -> Metric:
    """scikit-learn's metric of label ids, or of indicators `[examples, labels]`."""

    def score(labels: np.ndarray, predicted: np.ndarray) -> Any:
        from sklearn import metrics  # Takes half a second.

        return getattr(metrics, name)(labels, predicted, **options)

    return score


def correlation(name: str) -> Metric:
    """scipy's correlation of scores; 0, not NaN, where all scores of one side are the same."""

    def correlate(labels: np.ndarray, scores: np.ndarray) -> Any:
        import scipy.stats

        if len(labels) < 2:
            return 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", scipy.stats.ConstantInputWarning)
            return np.nan_to_num(getattr(scipy.stats, name)(labels, scores).statistic)

    return correlate


def class_table(labels: Sequence[str], ids: np.ndarray, predicted: np.ndarray) -> list[list[str]]:
    """Precision, recall, F1, confusion of each class, with a header; ids are int `[examples]`."""
    from sklearn import metrics

    all_ids = list(range(len(labels)))
    header, *rows = _score_rows(labels, ids, predicted, all_ids)
    counts = metrics.confusion_matrix(ids, predicted, labels=all_ids).tolist()
    rows = [[*row, *map(str, as_other)] for row, as_other in zip(rows, counts, strict=True)]
    return [[*header, *(f"as {label}" for label in labels)], *rows]


def label_table(labels: Sequence[str], truth: np.ndarray, predicted: np.ndarray) -> list[list[str]]:
    """The same without confusion, for label sets: int `[examples, labels]` of 0 and 1."""
    return _score_rows(labels, truth, predicted)


def _score_rows(
    labels: Sequence[str],
    truth: np.ndarray,
    predicted: np.ndarray,
    ids: Sequence[int] | None = None,
) -> list[list[str]]:
    from sklearn import metrics

    numbers = metrics.precision_recall_fscore_support(
        truth, predicted, labels=ids, zero_division=0.0
    )
    return [
        HEADER,
        *(
            [label, f"{p:.4f}", f"{r:.4f}", f"{f:.4f}", str(int(n))]  # They may be floats.
            for label, p, r, f, n in zip(labels, *numbers, strict=True)
        ),
    ]
