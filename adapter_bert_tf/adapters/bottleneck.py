"""The bottleneck: the one computation that every adapter method adds."""

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import AdapterConfig

ACTIVATION_FUNCTIONS = {
    "gelu": lambda x: tf.nn.gelu(x, approximate=True),
    "gelu_erf": lambda x: tf.nn.gelu(x, approximate=False),
    "relu": tf.nn.relu,
    "swish": tf.nn.silu,
    "tanh": tf.math.tanh,
    "linear": lambda x: x,
}


def bottleneck(x, down_kernel, down_bias, up_kernel, up_bias, activation):
    """Projects down, applies the nonlinearity, projects up (Houlsby et al. 2019, section 2.1).

    Args:
      x: float `[batch, seq, hidden]`.
      down_kernel: `[hidden, bottleneck]`.
      down_bias: `[bottleneck]`.
      up_kernel: `[bottleneck, hidden]`.
      up_bias: `[hidden]`.
      activation: function of a tensor.

    Returns:
      `[batch, seq, hidden]` in the dtype of `x`, without the skip connection.
    """
    narrow = tf.nn.bias_add(tf.tensordot(x, down_kernel, 1), down_bias)
    return tf.nn.bias_add(tf.tensordot(activation(narrow), up_kernel, 1), up_bias)


@tf_keras.utils.register_keras_serializable(package="adapter_bert_tf")
class BottleneckAdapter(tf_keras.layers.Layer):
    """An adapter with variables of its own: `output + scale * bottleneck(source)`.

    The source is the sublayer's output (serial), its input (parallel), or
    LayerNorm(input + output) (`normalize_input`); see `AdapterConfig`, whose arguments these are.

    Variables: `down_kernel [hidden, bottleneck]`, `down_bias [bottleneck]`,
    `up_kernel [bottleneck, hidden]`, `up_bias [hidden]`.
    """

    def __init__(self, bottleneck_size=64, activation="gelu", init_scale=0.02, identity_init=True,
                 dropout=0.0, scale=1.0, placement="serial", normalize_input=False, **kwargs):
        super().__init__(**kwargs)
        self.bottleneck_size = bottleneck_size
        self.activation = activation
        self.init_scale = init_scale
        self.identity_init = identity_init
        self.dropout = dropout
        self.scale = scale
        self.placement = placement
        self.normalize_input = normalize_input
        self.dropout_layer = tf_keras.layers.Dropout(dropout) if dropout else None

    def build(self, input_shape):
        hidden = input_shape[-1]
        down, up = (tf_keras.initializers.TruncatedNormal(stddev=self.init_scale) for _ in "du")
        for name, shape, initializer in (
            ("down_kernel", (hidden, self.bottleneck_size), down),
            ("down_bias", (self.bottleneck_size,), "zeros"),
            ("up_kernel", (self.bottleneck_size, hidden), "zeros" if self.identity_init else up),
            ("up_bias", (hidden,), "zeros"),
        ):
            setattr(self, name, self.add_weight(name, shape=shape, initializer=initializer))
        super().build(input_shape)

    def call(self, output, residual, layer_norm, training=None):
        """Adapts one sublayer's output.

        Args:
          output: `[batch, seq, hidden]`, the sublayer's output after its dropout.
          residual: `[batch, seq, hidden]`, the sublayer's input.
          layer_norm: the LayerNorm that the block applies to `residual + output`.
          training: whether dropout is active.

        Returns:
          `[batch, seq, hidden]`, float32 if `residual` is: the skip connection is not rounded.
        """
        source = residual if self.placement == "parallel" else output
        if self.normalize_input:
            source = layer_norm(tf.cast(output, residual.dtype) + residual)
        change = bottleneck(
            tf.cast(source, self.compute_dtype), self.down_kernel, self.down_bias,
            self.up_kernel, self.up_bias, ACTIVATION_FUNCTIONS[self.activation],
        )
        if self.dropout_layer is not None:
            change = self.dropout_layer(change, training=training)
        if self.scale != 1.0:
            change = change * self.scale
        return tf.cast(output, residual.dtype) + tf.cast(change, residual.dtype)

    def get_config(self):
        names = ("bottleneck_size", "activation", "init_scale", "identity_init", "dropout",
                 "scale", "placement", "normalize_input")
        return super().get_config() | {name: getattr(self, name) for name in names}


class AdapterStack(tf_keras.layers.Layer):
    """One `BottleneckAdapter` for each (layer, sublayer) that an `AdapterConfig` names.

    Args:
      config: the `AdapterConfig`.
      num_layers: number of layers of the encoder.
      hidden_size: width of the encoder.
    """

    def __init__(self, config, num_layers, hidden_size, **kwargs):
        super().__init__(**kwargs)
        if isinstance(config, dict):
            config = AdapterConfig.from_dict(config)
        self.config = config
        self.num_layers = num_layers
        self.hidden_size = hidden_size
        self.adapters = {
            f"layer_{i}": {name: self._make(i, name) for name in config.sublayers}
            for i in config.layer_indices(num_layers)
        }

    def _make(self, layer, sublayer):
        config = self.config
        return BottleneckAdapter(
            bottleneck_size=config.bottleneck_size, activation=config.activation,
            init_scale=config.init_scale, identity_init=config.identity_init,
            dropout=config.dropout, scale=config.scale, placement=config.placement,
            normalize_input=config.normalize_input, name=f"layer_{layer}/{sublayer}",
        )

    def build(self, input_shape):
        for sublayers in self.adapters.values():
            for adapter in sublayers.values():
                with tf.name_scope(adapter.name):
                    adapter.build((None, None, self.hidden_size))
        super().build(input_shape)

    def at(self, layer):
        """The adapters of one layer: a dict from sublayer name to `BottleneckAdapter`."""
        return self.adapters.get(f"layer_{layer}", {})

    def named_variables(self):
        """Dict from `adapters/layer_I/SUBLAYER/VARIABLE` to variable, lowest layer first."""
        return {
            f"adapters/{layer}/{sublayer}/{name}": getattr(adapter, name)
            for layer, sublayers in self.adapters.items()
            for sublayer, adapter in sublayers.items()
            for name in ("down_kernel", "down_bias", "up_kernel", "up_bias")
        }

    def get_config(self):
        return super().get_config() | {
            "config": self.config.__dict__, "num_layers": self.num_layers,
            "hidden_size": self.hidden_size,
        }
