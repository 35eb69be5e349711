"""The span labeler of BERT: a dense layer scores each position as an answer's first or last."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import Tensor, dense
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.heads.losses import Loss, sparse_cross_entropy
from adapter_bert_tf.heads.task_model import TaskModel

LABELS = ("start", "end")  # Of the head's two outputs.


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


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class SpanLabeler(TaskModel):
    """Start and end scores of every position (Devlin et al. 2019, section 4.2)."""

    unused = ("pooler",)

    def __init__(self, encoder: AdapterBertEncoder | TaskEncoder, **kwargs: Any) -> None:
        super().__init__(encoder, len(LABELS), **kwargs)

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Logits, float32 `[batch, 2, seq]`, starts and ends, of int32 `[batch, seq]` inputs.

        Padding gets -1e9, so that the loss does not depend on how far a batch is padded.
        """
        sequence = self.encoder(inputs, training=training)["sequence_output"]
        return span_logits(self.head(sequence), inputs["input_mask"])

    def training_loss(self) -> Loss:
        """The mean of the cross-entropies of start and end; labels are int32 `[batch, 2]`."""
        return sparse_cross_entropy
