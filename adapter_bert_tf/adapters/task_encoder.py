"""An encoder of one task that shares the frozen weights of the base with those of other tasks."""

import dataclasses

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.layers import AdapterStack, as_config
from adapter_bert_tf.adapters.parts import POOLER, Parts, norm_names


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class TaskEncoder(tf_keras.layers.Layer, Parts):
    """Adapters, LayerNorms and a pooler of its own around an encoder that is not its own.

    Whatever it trains, the shared encoder computes the same as before.

    Args:
      encoder: `AdapterBertEncoder` without adapters.
      adapter: `AdapterConfig`, one as a dict, or None.
      own_norms: whether it has LayerNorms of its own; they start as the encoder's.
      own_pooler: the same for the pooler.
    """

    def __init__(self, encoder, adapter=None, own_norms=True, own_pooler=False, **kwargs):
        super().__init__(**kwargs)
        sizes = encoder.config
        self.encoder = encoder
        self.config = sizes
        self.inputs = encoder.inputs
        self.adapter_config = adapter = as_config(adapter)
        self.adapters = adapter and AdapterStack(
            adapter, sizes["num_layers"], sizes["hidden_size"], name="adapters"
        )
        if adapter:
            self.adapters.build((None, None, sizes["hidden_size"]))
        shared = encoder.base_variables()
        names = norm_names(sizes["num_layers"]) if own_norms else []
        self.norms = {name.replace("/", "_"): _norm_like(shared, name, sizes) for name in names}
        self.own_pooler = _dense_like(shared, POOLER) if own_pooler else None

    def call(self, inputs, output_range=None):
        """As `AdapterBertEncoder.call`."""
        return self.encoder(inputs, output_range=output_range, parts=self)

    def adapters_at(self, layer):
        return self.adapters.adapters_at(layer) if self.adapters else {}

    def norm(self, name, own):
        return self.norms.get(name.replace("/", "_"), own)

    def pooler(self, own):
        return self.own_pooler or own

    def named_variables(self):
        """As `AdapterBertEncoder.named_variables`, with its own in place of the shared ones."""
        named = self.encoder.base_variables()
        for name in norm_names(self.config["num_layers"]) if self.norms else []:
            layer = self.norm(name, None)
            named |= {f"{name}/gamma": layer.gamma, f"{name}/beta": layer.beta}
        if self.own_pooler:
            named |= {
                f"{POOLER}/kernel": self.own_pooler.kernel,
                f"{POOLER}/bias": self.own_pooler.bias,
            }
        return named | (self.adapters.named_variables() if self.adapters else {})

    def get_config(self):
        adapter = self.adapter_config and dataclasses.asdict(self.adapter_config)
        return super().get_config() | {
            "encoder": tf_keras.utils.serialize_keras_object(self.encoder),
            "adapter": adapter,
            "own_norms": bool(self.norms),
            "own_pooler": self.own_pooler is not None,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        encoder = tf_keras.utils.deserialize_keras_object(config.pop("encoder"))
        return cls(encoder, **config)


def _norm_like(shared, name, sizes):
    gamma, beta = shared[f"{name}/gamma"], shared[f"{name}/beta"]
    layer = tf_keras.layers.LayerNormalization(
        epsilon=sizes["norm_epsilon"], dtype=tf.float32, name="layer_norm"
    )
    with tf.name_scope(layer.name):  # By its name it is known not to decay.
        layer.build((None, None, sizes["hidden_size"]))
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    return layer


def _dense_like(shared, name):
    kernel, bias = shared[f"{name}/kernel"], shared[f"{name}/bias"]
    layer = tf_keras.layers.Dense(bias.shape[0], activation="tanh", name="pooler_transform")
    layer.build((None, kernel.shape[0]))
    layer.kernel.assign(kernel)
    layer.bias.assign(bias)
    return layer
