"""What the models of all tasks have: the adapted encoder and a dense head."""

from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.specs import Spec
from adapter_bert_tf.adapters.task_encoder import TaskEncoder


def head_specs(hidden_size: int, outputs: int) -> dict[str, Spec]:
    """Dict from common name to `Spec` of a head's dense layer."""
    return {
        "head/kernel": Spec((hidden_size, outputs), "head"),
        "head/bias": Spec((outputs,), "head"),
    }


class TaskModel(tf_keras.Model):
    """An encoder and a head; a subclass says in `call` what goes from one to the other.

    Args:
      encoder: `AdapterBertEncoder` or `TaskEncoder`.
      outputs: of the head, a dense layer on hidden states, in float32 whatever the precision.

    Attributes:
      unused: groups of variables that no output depends on.
    """

    unused: tuple[str, ...] = ()

    def __init__(
        self, encoder: AdapterBertEncoder | TaskEncoder, outputs: int, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.encoder = encoder
        self.head = tf_keras.layers.Dense(
            outputs,
            name="head",
            dtype=tf.float32,
            kernel_initializer=tf_keras.initializers.TruncatedNormal(stddev=0.02),
        )
        # Not by a call on `encoder.inputs`, which would tie it to a shared encoder for good.
        with tf.name_scope(self.head.name):
            self.head.build((None, encoder.config["hidden_size"]))
        self.built = True

    def named_variables(self) -> dict[str, tf.Variable]:
        """The encoder's named variables and the head's (`head/kernel`, `head/bias`)."""
        return self.encoder.named_variables() | {
            "head/kernel": self.head.kernel,
            "head/bias": self.head.bias,
        }

    def specs(self) -> dict[str, Spec]:
        """Dict from the names of `named_variables` to their `Spec`s."""
        return self.encoder.specs() | head_specs(
            self.encoder.config["hidden_size"], self.head.units
        )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "encoder": tf_keras.utils.serialize_keras_object(self.encoder)
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> "TaskModel":
        encoder = tf_keras.utils.deserialize_keras_object(config.pop("encoder"))
        return cls(encoder, **config)
