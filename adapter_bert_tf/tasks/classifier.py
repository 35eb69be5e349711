"""The head of adapter-bert: one dropout and one dense layer on the pooled output."""

import tensorflow as tf
import tf_keras

from adapter_bert_tf.tasks.losses import sparse_cross_entropy


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class Classifier(tf_keras.Model):
    """Classes or a score from the pooled [CLS] (Devlin et al. 2019, section 4.1).

    Only the [CLS] row of the last block is computed, which is exact for the pooled output.

    Args:
      encoder: `AdapterBertEncoder`.
      num_labels: number of classes; 1 for regression.
      dropout: rate on the pooled output, while training.
      regression: whether the output is a score instead of logits.
    """

    unused = ()  # Groups of variables that no output depends on.

    def __init__(self, encoder, num_labels, dropout=0.1, regression=False, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.num_labels = num_labels
        self.regression = regression
        self.dropout_rate = dropout
        self.dropout = tf_keras.layers.Dropout(dropout)
        self.head = tf_keras.layers.Dense(
            num_labels, name="head", dtype=tf.float32,
            kernel_initializer=tf_keras.initializers.TruncatedNormal(stddev=0.02),
        )
        # Not by a call on `encoder.inputs`, which would tie it to a shared encoder for good.
        with tf.name_scope(self.head.name):
            self.head.build((None, encoder.config["hidden_size"]))
        self.built = True

    def call(self, inputs, training=None):
        """Logits, float32 `[batch, num_labels]`, of int32 `[batch, seq]` inputs."""
        pooled = self.encoder(inputs, output_range=1, training=training)["pooled_output"]
        return self.head(self.dropout(pooled, training=training))

    def training_loss(self):
        """The loss to train with: of label ids, or of scores."""
        if self.regression:
            return tf_keras.losses.MeanSquaredError()
        return sparse_cross_entropy

    def rescale_head(self, mean, deviation):
        """Lets a head that was trained on standardized scores speak in the scores' own units."""
        self.head.kernel.assign(self.head.kernel * deviation)
        self.head.bias.assign(self.head.bias * deviation + mean)

    def named_variables(self):
        """The encoder's named variables and the head's (`head/kernel`, `head/bias`)."""
        return self.encoder.named_variables() | {
            "head/kernel": self.head.kernel, "head/bias": self.head.bias,
        }

    def get_config(self):
        return super().get_config() | {
            "encoder": tf_keras.utils.serialize_keras_object(self.encoder),
            "num_labels": self.num_labels, "dropout": self.dropout_rate,
            "regression": self.regression,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        encoder = tf_keras.utils.deserialize_keras_object(config.pop("encoder"))
        return cls(encoder, **config)
