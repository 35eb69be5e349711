"""Metrics by name: scikit-learn's on label ids, scipy's on scores."""

import warnings

import numpy as np
import scipy.stats
from sklearn import metrics

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.received import shown


def _correlation(function):
    """A correlation that is 0, not NaN, when all scores are the same."""

    def correlate(labels, scores):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", scipy.stats.ConstantInputWarning)
            return np.nan_to_num(function(labels, scores).statistic)

    return correlate


METRICS = {
    "accuracy": metrics.accuracy_score,
    "f1": metrics.f1_score,
    "macro_f1": lambda labels, predicted: metrics.f1_score(labels, predicted, average="macro"),
    "mcc": metrics.matthews_corrcoef,
    "pearson": _correlation(scipy.stats.pearsonr),
    "spearman": _correlation(scipy.stats.spearmanr),
}


OF_SCORES = ("pearson", "spearman")


def chosen_first(metric, names, labels):
    """The metrics of a task with the one first that it is to be judged by.

    Args:
      metric: a name, or None for the first of `names`.
      names: tuple of the task's own.
      labels: of the task; none for scores.

    Raises:
      InputError: for a metric that there is not, or that is none of such a task.
    """
    if metric is None:
        return names
    fitting = [name for name in METRICS if (name in OF_SCORES) == (not labels)]
    if len(labels or ()) != 2 and "f1" in fitting:
        fitting.remove("f1")  # Of one class, where there are two.
    if metric not in fitting:
        raise InputError(
            f"metric is one of {fitting}, for {len(labels) if labels else 'no'} labels. Received: "
            f"{shown(metric)}",
            "metric",
        )
    return (metric, *(name for name in names if name != metric))


def evaluate(names, labels, outputs):
    """Scores predictions.

    Args:
      names: of `METRICS`.
      labels: int `[examples]`, the true label ids; for regression float, the true scores.
      outputs: float `[examples, labels]`, probabilities; for regression `[examples]`, scores.

    Returns:
      dict from name to float, and `loss`: the mean cross-entropy in nats, or the mean squared
      error.
    """
    predicted = outputs.argmax(-1) if outputs.ndim == 2 else outputs
    scores = {name: float(METRICS[name](labels, predicted)) for name in names}
    return scores | {"loss": _loss(labels, outputs.astype("float64"))}


def _loss(labels, outputs):
    if outputs.ndim == 1:
        return float(metrics.mean_squared_error(labels, outputs))
    # log_loss wants float64 rows that sum to one.
    exact = outputs / outputs.sum(-1, keepdims=True)
    return float(metrics.log_loss(labels, exact, labels=list(range(exact.shape[-1]))))


def is_constant(outputs):
    """Whether all examples got the same label, or the same score."""
    predicted = outputs.argmax(-1) if outputs.ndim == 2 else outputs
    spread = np.ptp(predicted) / max(1.0, np.abs(predicted).max())
    return len(predicted) > 1 and bool(spread <= 1e-6)
