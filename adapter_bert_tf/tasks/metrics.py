"""Metrics by name: scikit-learn's on label ids, scipy's on scores."""

import warnings

import numpy as np

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview


def _of_labels(name, **options):
    """scikit-learn's metric of a name, loaded when it is needed: it takes half a second."""

    def score(labels, predicted):
        from sklearn import metrics

        return getattr(metrics, name)(labels, predicted, **options)

    return score


def _correlation(name):
    """scipy's correlation of a name; 0, not NaN, when all scores are the same, as one is."""

    def correlate(labels, scores):
        import scipy.stats

        if len(labels) < 2:
            return 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", scipy.stats.ConstantInputWarning)
            return np.nan_to_num(getattr(scipy.stats, name)(labels, scores).statistic)

    return correlate


METRICS = {
    "accuracy": _of_labels("accuracy_score"),
    "f1": _of_labels("f1_score"),
    "macro_f1": _of_labels("f1_score", average="macro"),
    "mcc": _of_labels("matthews_corrcoef"),
    "pearson": _correlation("pearsonr"),
    "spearman": _correlation("spearmanr"),
}
OF_SCORES = ("pearson", "spearman")
OF_SETS = {  # F1 over labels and examples; of a label that nobody has or is given it is 0.
    "micro_f1": _of_labels("f1_score", average="micro", zero_division=0.0),
    "macro_f1": _of_labels("f1_score", average="macro", zero_division=0.0),
    "accuracy": _of_labels("accuracy_score"),  # Of examples whose labels are all right.
}
SURE = 0.5  # From this probability on an example is said to have a label.


def chosen_first(metric, task):
    """The metrics of a task with the one first that it is to be judged by.

    Args:
      metric: a name, or None for the first of its own.
      task: `Task`, its labels known.

    Raises:
      InputError: for a metric that there is not, or that is none of such a task.
    """
    fitting = _fitting(task)
    if metric not in (None, *fitting):
        labels = "a score" if task.regression else f"{len(task.labels)} labels"
        raise InputError(
            f"metric is one of {fitting}, for {labels}. Received: {preview(metric)}", "metric"
        )
    first = (metric,) if metric else ()
    return (*first, *(name for name in task.metrics if name != metric))


def _fitting(task):
    if task.regression:
        return list(OF_SCORES)
    if task.multi_label:
        return list(OF_SETS)
    f1 = ["f1"] if len(task.labels) == 2 else []  # Of one class, where there are two.
    return ["accuracy", *f1, "macro_f1", "mcc"]


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


def evaluate_sets(names, labels, outputs):
    """Scores predictions of any number of labels.

    Args:
      names: of `OF_SETS`.
      labels: `[examples, labels]`, 1 for each that the example has.
      outputs: float `[examples, labels]`, probabilities.

    Returns:
      dict from name to float, and `loss`: the mean binary cross-entropy in nats.
    """
    truth, predicted = labels.astype(int), (outputs >= SURE).astype(int)
    scores = {name: float(OF_SETS[name](truth, predicted)) for name in names}
    sure = np.clip(np.where(truth, outputs, 1.0 - outputs.astype("float64")), 1e-15, 1.0)
    return scores | {"loss": float(-np.log(sure).mean())}


def _loss(labels, outputs):
    if outputs.ndim == 1:
        return float(np.mean(np.square(labels - outputs)))
    from sklearn import metrics

    # log_loss wants float64 rows that sum to one.
    exact = outputs / outputs.sum(-1, keepdims=True)
    return float(metrics.log_loss(labels, exact, labels=list(range(exact.shape[-1]))))


def is_constant(outputs, sets=False):
    """Whether all examples got the same label, or the same score.

    Args:
      outputs: as of `evaluate`.
      sets: whether they are probabilities of any number of labels.
    """
    if sets:
        return len(outputs) > 1 and bool(((outputs >= SURE) == (outputs[0] >= SURE)).all())
    predicted = outputs.argmax(-1) if outputs.ndim == 2 else outputs
    spread = np.ptp(predicted) / max(1.0, np.abs(predicted).max())
    return len(predicted) > 1 and bool(spread <= 1e-6)
