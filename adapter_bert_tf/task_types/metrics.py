"""Metrics of scikit-learn and scipy by name, loaded when they are needed."""

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Metric: TypeAlias = Callable[[np.ndarray, np.ndarray], Any]  # Of labels and what was predicted.


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
