"""The bottleneck: the computation of Houlsby's, Pfeiffer's and parallel adapters."""

from __future__ import annotations

from collections.abc import Mapping

from adapter_bert_tf.adapters.bottleneck_config import OUTPUT_NORM, AdapterConfig
from adapter_bert_tf.adapters.modules import AdapterModule, Function, Sublayer
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, Tensor, dense, layer_norm
from adapter_bert_tf.adapters.registry import module_for
from adapter_bert_tf.adapters.variable_specs import values_with_prefix
from adapter_bert_tf.lazy import tf

OUTPUT_NORM_EPSILON = 1e-5  # As in HyperFormer's code.


@module_for(AdapterConfig)
class BottleneckModule(AdapterModule):
    """An adapter after each sublayer that an `AdapterConfig` names."""

    config: AdapterConfig

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        prefix = f"adapters/layer_{sublayer.layer}/{sublayer.name}"
        values = values_with_prefix(self.values, prefix)
        if not values:
            return sublayer.unchanged()
        dropout = self.dropouts.get(prefix)
        # For profiles; and TensorFlow sums gradients in an order that depends on names.
        with tf.name_scope(f"layer_{sublayer.layer}/{sublayer.name}"):
            output = adapter_output(self.config, values, sublayer, dropout, self.stacked)
            return sublayer.changed_by(output)

    def sublayer_input(self, sublayer: Sublayer) -> tf.Tensor:
        return adapter_input(self.config, sublayer)


def adapter_input(config: AdapterConfig, sublayer: Sublayer) -> tf.Tensor:
    """What an adapter reads, `[batch, seq, hidden]`.

    The sublayer's output (serial), its input (parallel), or the LayerNorm of their sum
    (`normalize_input`).
    """
    if config.normalize_input:
        return sublayer.norm(sublayer.unchanged() + sublayer.residual)
    return sublayer.residual if config.placement == "parallel" else sublayer.output


def adapter_output(
    config: AdapterConfig,
    values: Mapping[str, Tensor],
    sublayer: Sublayer,
    dropout: Function | None = None,
    stacked: str | None = None,
) -> tf.Tensor:
    """The change that an adapter adds to a sublayer's output, without the residual.

    `scale * bottleneck(x)`, with `normalize_output` `scale * LayerNorm(bottleneck(x))`, in
    `[batch, seq, hidden]`, of members `[batch, seq, members, hidden]`. The values have the names of
    `AdapterConfig.variable_shapes`; `dropout` is a function of the bottleneck's result.
    """
    bottleneck = Bottleneck(config, values, sublayer, stacked)
    x = bottleneck.up(bottleneck.down())
    if dropout is not None:
        x = dropout(x)
    return x if config.scale == 1.0 else x * config.scale


class Bottleneck:
    """The projections of an adapter in a sublayer; arguments as of `adapter_output`.

    Attributes:
      input: that of `adapter_input`.
    """

    def __init__(
        self,
        config: AdapterConfig,
        values: Mapping[str, Tensor],
        sublayer: Sublayer,
        stacked: str | None = None,
    ) -> None:
        self.config, self.values, self.stacked = config, values, stacked
        self.input = adapter_input(config, sublayer)
        x, dtype = self.input, sublayer.output.dtype
        if config.layer_norm:
            gamma, beta = values["layer_norm_gamma"], values["layer_norm_beta"]
            x = layer_norm(tf.cast(x, sublayer.residual.dtype), gamma, beta, stacked=stacked)
        self.kernels = {n: tf.cast(v, dtype) for n, v in values.items() if "layer_norm" not in n}
        self.x = tf.cast(x, dtype)
        self.activation = ACTIVATION_FUNCTIONS[config.activation]
        if dtype == tf.float32:
            self.activation = sublayer.in_training.get(self.activation, self.activation)

    def down(self) -> tf.Tensor:
        """The values in the bottleneck, `[batch, seq, (members,) bottleneck]`."""
        x = self.activation(self._dense("down", self.x))
        has_middle = "middle_kernel" in self.kernels
        return self.activation(self._dense("middle", x)) if has_middle else x

    def up(self, x: tf.Tensor) -> tf.Tensor:
        """The output, with `normalize_output` after a LayerNorm of its own in float32."""
        x = self._dense("up", x)
        if not self.config.normalize_output:
            return x
        gamma, beta = self.values[f"{OUTPUT_NORM}_gamma"], self.values[f"{OUTPUT_NORM}_beta"]
        return layer_norm(tf.cast(x, tf.float32), gamma, beta, OUTPUT_NORM_EPSILON, self.stacked)

    def _dense(self, name: str, x: tf.Tensor) -> tf.Tensor:
        return dense(x, self.kernels[f"{name}_kernel"], self.kernels[f"{name}_bias"], self.stacked)
