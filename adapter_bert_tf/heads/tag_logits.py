"""Logits of tags from weights that come with the call, and their loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import Tensor, dense
from adapter_bert_tf.lazy import tf

TAGS_LEAVE_OUT = ("pooler",)  # Groups of variables that these outputs do not depend on.


def tag_logits(
    encoder: Any,
    inputs: Mapping[str, tf.Tensor],
    module: AdapterModule,
    kernel: Tensor,
    bias: Tensor,
    stacked: str | None = None,
) -> tf.Tensor:
    """What `Tagger` computes, `[batch, seq, tags]`, from given weights; see `TaskType.logits`."""
    sequence = encoder(inputs, module=module)["sequence_output"]
    return dense(sequence, kernel, bias, stacked)


def tag_cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """The weighted sum of the cross-entropies of a row's positions, float32 `[batch]`.

    A label below 0 would be an error on a CPU and NaN with XLA, so a weight of 0 masks positions.

    Args:
      labels: float32 `[batch, seq, 2]`, the number of the tag at each position and its weight. If
        the weights are batch size / counted words of the batch, the mean over rows is the mean over
        words, whatever number of them each replica has.
      logits: float32 `[batch, seq, tags]`.
    """
    numbers, weights = tf.cast(labels[..., 0], tf.int32), labels[..., 1]
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(numbers, logits)
    return tf.reduce_sum(weights * entropy, -1)
