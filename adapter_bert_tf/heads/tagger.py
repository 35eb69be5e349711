"""The tagger of BERT: a dense layer scores the tags of each position."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.heads.tag_logits import TAGS_LEAVE_OUT, tag_cross_entropy
from adapter_bert_tf.heads.task_model import TaskModel


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class Tagger(TaskModel):
    """Scores of the tags of every position (Devlin et al. 2019, section 5.3).

    The first position of a word predicts the word's tag. There is no pooler.

    Args:
      encoder: `AdapterBertEncoder` or `TaskEncoder`.
      num_tags: number of tags.
      dropout: rate on the last hidden states, while training.
    """

    unused = TAGS_LEAVE_OUT

    def __init__(
        self,
        encoder: AdapterBertEncoder | TaskEncoder,
        num_tags: int,
        dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(encoder, num_tags, **kwargs)
        self.num_tags = num_tags
        self.dropout_rate = dropout
        self.dropout = tf_keras.layers.Dropout(dropout)

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Logits, float32 `[batch, seq, tags]`, of int32 `[batch, seq]` inputs."""
        sequence = self.encoder(inputs, training=training)["sequence_output"]
        return self.head(self.dropout(sequence, training=training))

    def training_loss(self) -> Loss:
        """The cross-entropy of tags with weights; see `tag_cross_entropy`."""
        return tag_cross_entropy

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"num_tags": self.num_tags, "dropout": self.dropout_rate}
