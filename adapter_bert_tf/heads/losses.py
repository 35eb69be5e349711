"""The losses of classes and of several tasks; scores have tf_keras' own."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf

Loss: TypeAlias = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]  # Of labels and outputs.


def sparse_cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Cross-entropy of each label, float32; tf_keras' own casts labels to int64, unknown to TPUs.

    Args:
      labels: int32 `[batch]`, `[batch, 1]` or `[batch, 2]`.
      logits: float32 `[batch, classes]` or `[batch, 2, classes]`.
    """
    labels = tf.reshape(labels, tf.shape(logits)[:-1])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def binary_cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """The mean over labels of the cross-entropy of having each, float32 `[batch]`.

    Args:
      labels: float32 `[batch, labels]`, 1 for each that a row has.
      logits: float32 `[batch, labels]`.
    """
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits), -1)


def cross_entropy(weights: Sequence[float], smoothing: float = 0.0) -> Loss:
    """The loss of classes that do not count alike, or are not believed in wholly.

    Args:
      weights: of each class; a row counts as much as its class.
      smoothing: share of the probability that the right class gives away to all, itself among them
        (Szegedy et al. 2016, section 7).

    Returns:
      function of int32 labels `[batch]` and float32 logits `[batch, classes]`; float32 `[batch]`.
    """

    def loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        labels = tf.reshape(labels, [-1])
        entropy = (1 - smoothing) * sparse_cross_entropy(labels, logits)
        entropy -= smoothing * tf.reduce_mean(tf.nn.log_softmax(logits), -1)
        return entropy * tf.gather(tf.constant(list(weights), tf.float32), labels)

    return loss


def mixed_loss(is_score: Sequence[bool]) -> Loss:
    """The loss of rows of several tasks: cross-entropy of classes, squared error of scores.

    Every row counts once in the mean, whatever its task.

    Args:
      is_score: of each output, whether it is a score.

    Returns:
      function of labels and outputs. Labels are float32 `[batch, 2]`: which output is right, or is
      the score, and what the score should be. Outputs are float32 `[batch, outputs]`, with a large
      negative number for those of other tasks.
    """

    def loss(labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        columns = tf.cast(labels[:, 0], tf.int32)
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(columns, outputs)
        error = tf.gather(outputs, columns, batch_dims=1) - labels[:, 1]
        return tf.where(tf.gather(tf.constant(list(is_score)), columns), tf.square(error), entropy)

    return loss
