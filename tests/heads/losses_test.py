"""The losses of classes, by hand."""

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.heads.losses import cross_entropy, sparse_cross_entropy

LOGITS = np.array([[1.0, -0.5, 0.25], [0.0, 2.0, -1.0], [3.0, 0.5, 0.5]], np.float32)
LABELS = np.array([2, 1, 0], np.int32)
LOG_SHARES = LOGITS - np.log(np.exp(LOGITS).sum(-1, keepdims=True))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.5, 2.0, 3.0)])
def test_cross_entropy_by_hand(weights, smoothing):
    targets = (1 - smoothing) * np.eye(3)[LABELS] + smoothing / 3
    expected = -(targets * LOG_SHARES).sum(-1) * np.array(weights)[LABELS]
    found = cross_entropy(weights, smoothing)(LABELS[:, np.newaxis], LOGITS)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_without_weights_and_smoothing_it_is_the_usual_loss():
    labels, logits = tf.constant(LABELS), tf.constant(LOGITS)
    usual = sparse_cross_entropy(labels, logits)
    np.testing.assert_allclose(cross_entropy([1.0] * 3)(labels, logits), usual, rtol=1e-6)


def test_gradients_are_finite_where_a_class_is_certain():
    logits = tf.Variable([[200.0, -200.0]])
    with tf.GradientTape() as tape:
        loss = cross_entropy([1.0, 1.0], 0.1)(tf.constant([1]), logits)
    assert np.isfinite(loss).all() and np.isfinite(tape.gradient(loss, logits)).all()
