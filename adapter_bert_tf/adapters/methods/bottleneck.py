"""The bottleneck: the computation of Houlsby's, Pfeiffer's and parallel adapters."""

from collections.abc import Callable, Mapping

import tensorflow as tf

from adapter_bert_tf.adapters.config import OUTPUT_NORM, AdapterConfig
from adapter_bert_tf.adapters.modules import AdapterModule, Function, Sublayer
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, Tensor, dense, layer_norm
from adapter_bert_tf.adapters.registry import module_for
from adapter_bert_tf.adapters.variable_specs import values_with_prefix

OUTPUT_NORM_EPSILON = 1e-5  # As in HyperFormer's code.


@module_for(AdapterConfig)
class BottleneckModule(AdapterModule):
    """An adapter after each sublayer that an `AdapterConfig` names.

    The values are named `adapters/layer_I/SUBLAYER/VARIABLE`, the dropouts
    `adapters/layer_I/SUBLAYER`.
    """

    config: AdapterConfig

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        """The sublayer's output plus that of the adapter."""
        prefix = f"adapters/layer_{sublayer.layer}/{sublayer.name}"
        values = values_with_prefix(self.values, prefix)
        if not values:
            return sublayer.unchanged()
        dropout = self.dropouts.get(prefix)
        # For profiles; and TensorFlow sums gradients in an order that depends on names.
        with tf.name_scope(f"layer_{sublayer.layer}/{sublayer.name}"):
            output = adapter_output(self.config, values, sublayer, dropout, self.stacked)
            return sublayer.changed_by(output)


def adapter_output(
    config: AdapterConfig,
    values: Mapping[str, Tensor],
    sublayer: Sublayer,
    dropout: Function | None = None,
    stacked: str | None = None,
) -> tf.Tensor:
    """The change that an adapter adds to a sublayer's output: `scale * bottleneck(x)`.

    With `normalize_output` it is `scale * LayerNorm(bottleneck(x))`.

    Args:
      config: the `AdapterConfig`.
      values: dict from the names of `AdapterConfig.variable_shapes` to variables or tensors.
      sublayer: the `Sublayer`.
      dropout: function of the bottleneck's result, or None.
      stacked: as in `ops.dense`.

    Returns:
      `[batch, seq, hidden]`, without the residual; of members `[batch, seq, members, hidden]`.
    """
    x = adapter_input(config, sublayer)
    x, kernels = normalize_input(config, values, sublayer, x, stacked)
    x = project_down(x, kernels, ACTIVATION_FUNCTIONS[config.activation], stacked)
    x = project_up(x, kernels, stacked)
    if config.normalize_output:
        x = normalize_output(x, values, stacked)
    if dropout is not None:
        x = dropout(x)
    return x if config.scale == 1.0 else x * config.scale


def adapter_input(config: AdapterConfig, sublayer: Sublayer) -> tf.Tensor:
    """The input of an adapter, before a LayerNorm of its own.

    It is the sublayer's output (serial), its input (parallel), or LayerNorm(input + output)
    (`normalize_input`).
    """
    if config.normalize_input:
        return sublayer.norm(sublayer.unchanged() + sublayer.residual)
    return sublayer.residual if config.placement == "parallel" else sublayer.output


def normalize_input(
    config: AdapterConfig,
    values: Mapping[str, Tensor],
    sublayer: Sublayer,
    x: tf.Tensor,
    stacked: str | None = None,
) -> tuple[tf.Tensor, dict[str, Tensor]]:
    """The input after the adapter's LayerNorm, if it has one, and its kernels and biases.

    Both are in the compute dtype.

    Args:
      config, values, sublayer, stacked: as in `adapter_output`.
      x: what `adapter_input` returns.
    """
    dtype = sublayer.output.dtype
    if config.layer_norm:
        gamma, beta = values["layer_norm_gamma"], values["layer_norm_beta"]
        x = layer_norm(tf.cast(x, sublayer.residual.dtype), gamma, beta, stacked=stacked)
    kernels = {
        name: tf.cast(value, dtype) for name, value in values.items() if "layer_norm" not in name
    }
    return tf.cast(x, dtype), kernels


def project_down(
    x: tf.Tensor,
    kernels: Mapping[str, Tensor],
    activation: Callable[[tf.Tensor], tf.Tensor],
    stacked: str | None = None,
) -> tf.Tensor:
    """The values in the bottleneck: projects down and applies the nonlinearity.

    Args:
      x: float `[batch, seq, hidden]`; of members also `[batch, seq, members, hidden]`.
      kernels: dict from name to kernel or bias in the dtype of `x`, stacked as in `ops.dense`. A
        second layer is applied if its kernel is there.
      activation: function of a tensor.
      stacked: as in `ops.dense`.

    Returns:
      `[batch, seq, bottleneck]` in the dtype of `x`; of members
      `[batch, seq, members, bottleneck]`.
    """
    x = activation(dense(x, kernels["down_kernel"], kernels["down_bias"], stacked))
    if "middle_kernel" in kernels:
        x = activation(dense(x, kernels["middle_kernel"], kernels["middle_bias"], stacked))
    return x


def project_up(
    x: tf.Tensor, kernels: Mapping[str, Tensor], stacked: str | None = None
) -> tf.Tensor:
    """Projects from the bottleneck up; arguments and result as of `project_down`."""
    return dense(x, kernels["up_kernel"], kernels["up_bias"], stacked)


def normalize_output(
    x: tf.Tensor, values: Mapping[str, Tensor], stacked: str | None = None
) -> tf.Tensor:
    """A bottleneck's result after the adapter's LayerNorm of it, float32."""
    gamma, beta = values[f"{OUTPUT_NORM}_gamma"], values[f"{OUTPUT_NORM}_beta"]
    return layer_norm(tf.cast(x, tf.float32), gamma, beta, OUTPUT_NORM_EPSILON, stacked)
