"""What heads compute from weights that come with the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import Tensor, dense
from adapter_bert_tf.lazy import tf

SPAN_LABELS = ("start", "end")  # Of the two outputs of a head of spans.
SPANS_LEAVE_OUT = ("pooler",)  # Groups of variables that these outputs do not depend on.


def pooled_logits(
    encoder: Any,
    inputs: Mapping[str, tf.Tensor],
    module: AdapterModule,
    kernel: Tensor,
    bias: Tensor,
    stacked: str | None = None,
) -> tf.Tensor:
    """What `Classifier` computes, from given weights; see `Head.logits`."""
    pooled = encoder(inputs, output_range=1, module=module)["pooled_output"]
    return dense(pooled, kernel, bias, stacked)


def span_logits(scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Logits `[batch, 2, seq]` from scores `[batch, seq, 2]`; padding, mask 0, gets -1e9."""
    padding = 1.0 - tf.cast(mask[:, tf.newaxis, :], tf.float32)
    return tf.transpose(scores, [0, 2, 1]) - 1e9 * padding


def sequence_logits(
    encoder: Any,
    inputs: Mapping[str, tf.Tensor],
    module: AdapterModule,
    kernel: Tensor,
    bias: Tensor,
    stacked: str | None = None,
) -> tf.Tensor:
    """What `SpanLabeler` computes, from given weights; see `Head.logits`."""
    sequence = encoder(inputs, module=module)["sequence_output"]
    return span_logits(dense(sequence, kernel, bias, stacked), inputs["input_mask"])
