"""The span labeler of BERT: a dense layer scores each position as an answer's first or last."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.heads.logits import SPAN_LABELS, SPANS_LEAVE_OUT, span_logits
from adapter_bert_tf.heads.losses import Loss, sparse_cross_entropy
from adapter_bert_tf.heads.task_model import TaskModel


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class SpanLabeler(TaskModel):
    """Start and end scores of every position (Devlin et al. 2019, section 4.2)."""

    unused = SPANS_LEAVE_OUT

    def __init__(self, encoder: AdapterBertEncoder | TaskEncoder, **kwargs: Any) -> None:
        super().__init__(encoder, len(SPAN_LABELS), **kwargs)

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Logits, float32 `[batch, 2, seq]`, starts and ends, of int32 `[batch, seq]` inputs.

        Padding gets -1e9, so that the loss does not depend on how far a batch is padded.
        """
        sequence = self.encoder(inputs, training=training)["sequence_output"]
        return span_logits(self.head(sequence), inputs["input_mask"])

    def training_loss(self) -> Loss:
        """The mean of the cross-entropies of start and end; labels are int32 `[batch, 2]`."""
        return sparse_cross_entropy
