"""What the models of all tasks have: the adapted encoder and a dense head."""

import tensorflow as tf
import tf_keras


class TaskModel(tf_keras.Model):
    """An encoder and a head; a subclass says in `call` what goes from one to the other.

    Args:
      encoder: `AdapterBertEncoder`.
      outputs: of the head, a dense layer on hidden states, in float32 whatever the precision.

    Attributes:
      unused: groups of variables that no output depends on.
    """

    unused = ()

    def __init__(self, encoder, outputs, **kwargs):
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

    def named_variables(self):
        """The encoder's named variables and the head's (`head/kernel`, `head/bias`)."""
        return self.encoder.named_variables() | {
            "head/kernel": self.head.kernel,
            "head/bias": self.head.bias,
        }

    def get_config(self):
        return super().get_config() | {
            "encoder": tf_keras.utils.serialize_keras_object(self.encoder)
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        encoder = tf_keras.utils.deserialize_keras_object(config.pop("encoder"))
        return cls(encoder, **config)
