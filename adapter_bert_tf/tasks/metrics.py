"""Metrics by name: scikit-learn's, on label ids."""

from sklearn import metrics

METRICS = {
    "accuracy": metrics.accuracy_score,
    "f1": metrics.f1_score,
    "mcc": metrics.matthews_corrcoef,
}


def evaluate(names, labels, probabilities):
    """Scores predictions.

    Args:
      names: of `METRICS`.
      labels: int `[examples]`, the true label ids.
      probabilities: float `[examples, labels]`.

    Returns:
      dict from `eval_NAME` to float, and `eval_loss`, the mean cross-entropy in nats.
    """
    predicted = probabilities.argmax(-1)
    scores = {f"eval_{name}": float(METRICS[name](labels, predicted)) for name in names}
    ids = list(range(probabilities.shape[-1]))
    # log_loss wants float64 rows that sum to one.
    exact = probabilities.astype("float64")
    exact /= exact.sum(-1, keepdims=True)
    return scores | {"eval_loss": float(metrics.log_loss(labels, exact, labels=ids))}
