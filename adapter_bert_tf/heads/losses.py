"""The losses of classes and of several tasks; scores have tf_keras' own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from adapter_bert_tf.lazy import tf

Loss: TypeAlias = Callable[["tf.Tensor", "tf.Tensor"], "tf.Tensor"]  # Of labels and outputs.


def sparse_cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Cross-entropy of labels, int32 `[batch]`, `[batch, 1]` or `[batch, 2]`, as float32.

    Logits are float32 `[batch, classes]` or `[batch, 2, classes]`. tf_keras' own loss casts labels
    to int64, which TPUs do not support.
    """
    labels = tf.reshape(labels, tf.shape(logits)[:-1])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def binary_cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Mean of the labels' binary cross-entropies, float32 `[batch]`, from `[batch, labels]`."""
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits), -1)


def cross_entropy(weights: Sequence[float], smoothing: float = 0.0) -> Loss:
    """The loss of weighted classes with label smoothing, float32 `[batch]`.

    A row counts as much as its class. `smoothing` is the share of the probability that moves from
    the right class to all classes, including itself (Szegedy et al. 2016, section 7).
    """

    def loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        labels = tf.reshape(labels, [-1])
        entropy = (1 - smoothing) * sparse_cross_entropy(labels, logits)
        entropy -= smoothing * tf.reduce_mean(tf.nn.log_softmax(logits), -1)
        return entropy * tf.gather(tf.constant(list(weights), tf.float32), labels)

    return loss


def mixed_loss(is_score: Sequence[bool]) -> Loss:
    """The loss of rows of several tasks: cross-entropy of classes, squared error of scores.

    Every row counts once in the mean, whatever its task. `is_score` is, for each output, whether it
    is a score. Labels are float32 `[batch, 2]`: the right output, or that of the score, and the
    score. Outputs are float32 `[batch, outputs]`, with a large negative number for other tasks.
    """

    def loss(labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        columns = tf.cast(labels[:, 0], tf.int32)
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(columns, outputs)
        error = tf.gather(outputs, columns, batch_dims=1) - labels[:, 1]
        return tf.where(tf.gather(tf.constant(list(is_score)), columns), tf.square(error), entropy)

    return loss
