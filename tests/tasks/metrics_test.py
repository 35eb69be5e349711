"""Metrics against numbers worked out by hand."""

import math

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from adapter_bert_tf.task_types import table_type
from adapter_bert_tf.tasks import TASKS

CLASSES, SCORES = table_type("classification"), table_type("regression")
LABELS = np.array([1, 1, 1, 0, 0, 0, 0, 1])
PREDICTED = np.array([1, 1, 0, 0, 0, 1, 0, 0])  # 2 true and 1 false positive, 3 and 2 negative.


def _probabilities(predicted, confidence=0.8):
    rows = np.full((len(predicted), 2), 1 - confidence, "f4")
    rows[np.arange(len(predicted)), predicted] = confidence
    return rows


def test_by_hand():
    scores = CLASSES.evaluate(("accuracy", "f1", "mcc"), LABELS, _probabilities(PREDICTED))
    assert scores["accuracy"] == 5 / 8
    assert scores["f1"] == pytest.approx(2 * 2 / (2 * 2 + 1 + 2))
    assert scores["mcc"] == pytest.approx((2 * 3 - 1 * 2) / math.sqrt(3 * 4 * 4 * 5))
    expected = -(5 * math.log(0.8) + 3 * math.log(0.2)) / 8
    assert scores["loss"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("predicted", "accuracy", "mcc"),
    [(LABELS, 1.0, 1.0), (1 - LABELS, 0.0, -1.0), (0 * LABELS, 0.5, 0.0)],
)
def test_perfect_reversed_and_constant(predicted, accuracy, mcc):
    scores = CLASSES.evaluate(("accuracy", "mcc"), LABELS, _probabilities(predicted))
    assert (scores["accuracy"], scores["mcc"]) == (accuracy, mcc)


def test_scores_equal_scipy_and_scikit_learn():
    rng = np.random.default_rng(0)
    labels, outputs = rng.uniform(0, 5, 50), rng.uniform(0, 5, 50).astype("f4")
    scores = SCORES.evaluate(("pearson", "spearman"), labels, outputs)
    assert scores["pearson"] == scipy.stats.pearsonr(labels, outputs)[0]
    assert scores["spearman"] == scipy.stats.spearmanr(labels, outputs)[0]
    assert scores["loss"] == pytest.approx(np.mean((labels - outputs) ** 2))
    ids, predicted = rng.integers(0, 2, 50), rng.integers(0, 2, 50)
    scores = CLASSES.evaluate(("accuracy", "f1", "macro_f1", "mcc"), ids, _probabilities(predicted))
    assert scores["f1"] == sklearn.metrics.f1_score(ids, predicted)
    assert scores["macro_f1"] == sklearn.metrics.f1_score(ids, predicted, average="macro")
    assert scores["mcc"] == sklearn.metrics.matthews_corrcoef(ids, predicted)


def test_perfect_and_constant_scores():
    labels = np.array([0.0, 2.5, 5.0])
    assert SCORES.evaluate(("pearson", "spearman"), labels, labels) == {
        "pearson": pytest.approx(1.0),
        "spearman": pytest.approx(1.0),
        "loss": 0.0,
    }
    constant = SCORES.evaluate(("pearson", "spearman"), labels, np.full(3, 2.5))
    assert (constant["pearson"], constant["spearman"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("outputs", "constant"),
    [
        (_probabilities(LABELS), False),
        (_probabilities(0 * LABELS), True),
        (np.array([2.0, 2.0 + 1e-7]), True),
        (np.array([2.0, 2.1]), False),
    ],
)
def test_constant_predictions_are_noticed(outputs, constant):
    kind = CLASSES if outputs.ndim == 2 else SCORES
    assert kind.is_constant(outputs) == constant


def test_every_task_names_known_metrics():
    for task in TASKS.values():
        assert set(task.metrics) <= set(table_type(task.task_type).metrics)
        assert task.labels is None or len(set(task.labels)) == len(task.labels)


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_one_score_has_no_correlation(name):
    found = SCORES.evaluate((name,), np.array([2.0]), np.array([3.0], "f4"))
    assert found == {name: 0.0, "loss": 1.0}
