"""Classes and scores of several tasks, in batches whose rows are of different tasks."""

from collections.abc import Mapping

import tensorflow as tf
import tf_keras

from adapter_bert_tf.heads.losses import Loss, mixed_loss
from adapter_bert_tf.heads.mixed.model import NOT_ITS_OWN as NOT_ITS_OWN
from adapter_bert_tf.heads.mixed.model import TASK_IDS, MixedModel
from adapter_bert_tf.heads.mixed.model import HeadOf as HeadOf


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class MixedClassifier(MixedModel):
    """Classes and scores of several tasks from the pooled [CLS], each task with its own head."""

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Outputs of all tasks, float32 `[batch, outputs]`; `NOT_ITS_OWN` for other tasks."""
        pooled = self.encoder(inputs, output_range=1, training=training)["pooled_output"]
        return self.outputs_of(pooled, inputs[TASK_IDS], training)

    def training_loss(self) -> Loss:
        """The loss to train with; see `losses.mixed_loss`."""
        heads = self.head_of.values()
        return mixed_loss([head.is_score for head in heads for _ in range(head.outputs)])

    def rescale_head(self, task: str, mean: float, deviation: float) -> None:
        """As `Classifier.rescale_head`, of one task."""
        layer = self.heads[list(self.head_of).index(task)]
        layer.kernel.assign(layer.kernel * deviation)
        layer.bias.assign(layer.bias * deviation + mean)
