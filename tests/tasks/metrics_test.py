"""Metrics against numbers worked out by hand."""

import math

import numpy as np
import pytest

from adapter_bert_tf.tasks import TASKS
from adapter_bert_tf.tasks.metrics import METRICS, evaluate

LABELS = np.array([1, 1, 1, 0, 0, 0, 0, 1])
PREDICTED = np.array([1, 1, 0, 0, 0, 1, 0, 0])  # 2 true and 1 false positive, 3 and 2 negative.


def _probabilities(predicted, confidence=0.8):
    rows = np.full((len(predicted), 2), 1 - confidence, "f4")
    rows[np.arange(len(predicted)), predicted] = confidence
    return rows


def test_by_hand():
    scores = evaluate(("accuracy", "f1", "mcc"), LABELS, _probabilities(PREDICTED))
    assert scores["eval_accuracy"] == 5 / 8
    assert scores["eval_f1"] == pytest.approx(2 * 2 / (2 * 2 + 1 + 2))
    assert scores["eval_mcc"] == pytest.approx((2 * 3 - 1 * 2) / math.sqrt(3 * 4 * 4 * 5))
    expected = -(5 * math.log(0.8) + 3 * math.log(0.2)) / 8
    assert scores["eval_loss"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("predicted", "accuracy", "mcc"),
                         [(LABELS, 1.0, 1.0), (1 - LABELS, 0.0, -1.0), (0 * LABELS, 0.5, 0.0)])
def test_perfect_reversed_and_constant(predicted, accuracy, mcc):
    scores = evaluate(("accuracy", "mcc"), LABELS, _probabilities(predicted))
    assert (scores["eval_accuracy"], scores["eval_mcc"]) == (accuracy, mcc)


def test_every_task_names_known_metrics():
    for task in TASKS.values():
        assert set(task.metrics) <= set(METRICS)
        assert len(set(task.labels)) == len(task.labels)
