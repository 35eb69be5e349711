"""Adapters with variables of their own, as tf_keras layers."""

import dataclasses

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.bottleneck import adapt, variable_shapes
from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.parts import Parts


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class BottleneckAdapter(tf_keras.layers.Layer):
    """One adapter after one sublayer; see `bottleneck.adapt`.

    Variables: those of `bottleneck.variable_shapes`.

    Args:
      config: `AdapterConfig`, or one as a dict.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = as_config(config)
        self.dropout = tf_keras.layers.Dropout(self.config.dropout) if self.config.dropout else None
        self.values = {}

    def build(self, input_shape):
        for name, shape in variable_shapes(self.config, input_shape[-1]).items():
            self.values[name] = self.add_weight(name, shape, initializer=self._initializer(name))
        super().build(input_shape)

    def _initializer(self, name):
        if name.endswith("gamma"):
            return "ones"
        if not name.endswith("kernel") or (name == "up_kernel" and self.config.identity_init):
            return "zeros"
        return tf_keras.initializers.TruncatedNormal(stddev=self.config.init_scale)

    def call(self, output, residual, layer_norm, training=None):
        """Adapts a sublayer's output; see `bottleneck.adapt`."""
        dropout = self.dropout and (lambda x: self.dropout(x, training=training))
        return adapt(self.config, self.values, output, residual, layer_norm, dropout)

    def get_config(self):
        return super().get_config() | {"config": dataclasses.asdict(self.config)}


class AdapterStack(tf_keras.layers.Layer, Parts):
    """One `BottleneckAdapter` for each (layer, sublayer) that an `AdapterConfig` names.

    Args:
      config: the `AdapterConfig`, or one as a dict.
      num_layers: number of layers of the encoder.
      hidden_size: width of the encoder.
    """

    def __init__(self, config, num_layers, hidden_size, **kwargs):
        super().__init__(**kwargs)
        self.config = as_config(config)
        self.num_layers = num_layers
        self.hidden_size = hidden_size
        self.adapters = {
            f"layer_{i}": {
                name: BottleneckAdapter(self.config, name=f"layer_{i}/{name}")
                for name in self.config.sublayers
            }
            for i in self.config.layer_indices(num_layers)
        }

    def build(self, input_shape):
        for sublayers in self.adapters.values():
            for adapter in sublayers.values():
                with tf.name_scope(adapter.name):
                    adapter.build((None, None, self.hidden_size))
        super().build(input_shape)

    def adapters_at(self, layer):
        return self.adapters.get(f"layer_{layer}", {})

    def named_variables(self):
        """Dict from `adapters/layer_I/SUBLAYER/VARIABLE` to variable, lowest layer first."""
        return {
            f"adapters/{layer}/{sublayer}/{name}": variable
            for layer, sublayers in self.adapters.items()
            for sublayer, adapter in sublayers.items()
            for name, variable in adapter.values.items()
        }

    def get_config(self):
        return super().get_config() | {
            "config": dataclasses.asdict(self.config),
            "num_layers": self.num_layers,
            "hidden_size": self.hidden_size,
        }


def as_config(config):
    """An `AdapterConfig` from itself or from its dict."""
    return AdapterConfig.from_dict(config) if isinstance(config, dict) else config
