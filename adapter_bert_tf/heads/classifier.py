"""The head of adapter-bert: one dropout and one dense layer on the pooled output."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.ops import on_vectors
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.heads.losses import Loss, binary_cross_entropy, sparse_cross_entropy
from adapter_bert_tf.heads.task_model import TaskModel


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class Classifier(TaskModel):
    """Classes or a score from the pooled [CLS] (Devlin et al. 2019, section 4.1).

    Only the [CLS] row of the last block is computed, which is exact for the pooled output.

    Args:
      encoder: `AdapterBertEncoder`.
      num_labels: number of classes; 1 for regression.
      dropout: rate on the pooled output, while training.
      regression: whether the output is a score instead of logits.
      multi_label: whether a row has any number of labels, each with a logit of its own.
    """

    def __init__(
        self,
        encoder: AdapterBertEncoder | TaskEncoder,
        num_labels: int,
        dropout: float = 0.1,
        regression: bool = False,
        multi_label: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(encoder, num_labels, **kwargs)
        self.num_labels = num_labels
        self.regression = regression
        self.multi_label = multi_label
        self.dropout_rate = dropout
        self.dropout = tf_keras.layers.Dropout(dropout)

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Logits, float32 `[batch, num_labels]`, of int32 `[batch, seq]` inputs."""
        pooled = self.encoder(inputs, output_range=1, training=training)["pooled_output"]
        return on_vectors(self.head, self.dropout(pooled, training=training))

    def training_loss(self) -> Loss:
        """The loss to train with: of label ids, of sets of labels, or of scores."""
        if self.regression:
            return tf_keras.losses.MeanSquaredError()
        return binary_cross_entropy if self.multi_label else sparse_cross_entropy

    def rescale_head(self, mean: float, deviation: float) -> None:
        """Rescales a head that was trained on standardized scores to the scores' units."""
        self.head.kernel.assign(self.head.kernel * deviation)
        self.head.bias.assign(self.head.bias * deviation + mean)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "num_labels": self.num_labels,
            "dropout": self.dropout_rate,
            "regression": self.regression,
            "multi_label": self.multi_label,
        }
