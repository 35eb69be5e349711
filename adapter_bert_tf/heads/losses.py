"""The loss of classes; scores have tf_keras' own."""

import tensorflow as tf


def sparse_cross_entropy(labels, logits):
    """Cross-entropy of each label, float32; tf_keras' own casts labels to int64, unknown to TPUs.

    Args:
      labels: int32 `[batch]`, `[batch, 1]` or `[batch, 2]`.
      logits: float32 `[batch, classes]` or `[batch, 2, classes]`.
    """
    labels = tf.reshape(labels, tf.shape(logits)[:-1])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
