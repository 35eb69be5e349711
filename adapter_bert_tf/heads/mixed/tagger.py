"""Tags of several tasks, in batches whose rows are of different tasks."""

from collections.abc import Mapping

import tensorflow as tf
import tf_keras

from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.heads.mixed.model import TASK_IDS, MixedModel
from adapter_bert_tf.heads.tag_logits import TAGS_LEAVE_OUT, tag_cross_entropy


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class MixedTagger(MixedModel):
    """Scores of the tags of every position, each task with its own tags; see `Tagger`."""

    unused = TAGS_LEAVE_OUT

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Scores of the tags of all tasks, float32 `[batch, seq, tags]`; `NOT_ITS_OWN` for others.

        A softmax over a row is one over its own tags, so no tag of another task counts.
        """
        sequence = self.encoder(inputs, training=training)["sequence_output"]
        return self.outputs_of(sequence, inputs[TASK_IDS], training)

    def training_loss(self) -> Loss:
        """The cross-entropy of tags, numbered over all tasks, with weights."""
        return tag_cross_entropy
