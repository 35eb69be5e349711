"""The loss of classes; scores have tf_keras' own."""

from collections.abc import Callable
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
