"""The bottleneck: the computation of Houlsby's, Pfeiffer's and parallel adapters."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import tensorflow as tf

from adapter_bert_tf.adapters.modules import AdapterModule, Function, Place, add
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, Tensor, dense, layer_norm

if TYPE_CHECKING:
    from adapter_bert_tf.adapters.config import AdapterConfig

OUTPUT = "output_layer_norm"
OUTPUT_EPSILON = 1e-5  # Of HyperFormer's code.


def narrowed(
    x: tf.Tensor,
    values: Mapping[str, Tensor],
    activation: Callable[[tf.Tensor], tf.Tensor],
    stacked: str | None = None,
) -> tf.Tensor:
    """Projects down and applies the nonlinearity: what is in the bottleneck.

    Args:
      x: float `[batch, seq, hidden]`; of members also `[batch, seq, members, hidden]`.
      values: dict from the names of `variable_shapes` to kernels and biases in the dtype of `x`,
        stacked as in `ops.dense`. A second layer is applied if its kernel is there.
      activation: function of a tensor.
      stacked: as in `ops.dense`.

    Returns:
      `[batch, seq, bottleneck]` in the dtype of `x`; of members
      `[batch, seq, members, bottleneck]`.
    """
    narrow = activation(dense(x, values["down_kernel"], values["down_bias"], stacked))
    if "middle_kernel" in values:
        narrow = activation(dense(narrow, values["middle_kernel"], values["middle_bias"], stacked))
    return narrow


def variable_shapes(config: "AdapterConfig", hidden_size: int) -> dict[str, tuple[int, ...]]:
    """Dict from the names of one adapter's variables to their shapes."""
    size = config.bottleneck_size
    shapes: dict[str, tuple[int, ...]] = {
        "down_kernel": (hidden_size, size),
        "down_bias": (size,),
        "up_kernel": (size, hidden_size),
        "up_bias": (hidden_size,),
    }
    if config.depth == 2:
        shapes |= {"middle_kernel": (size, size), "middle_bias": (size,)}
    if config.layer_norm:
        shapes |= {"layer_norm_gamma": (hidden_size,), "layer_norm_beta": (hidden_size,)}
    if config.normalize_output:
        shapes |= {f"{OUTPUT}_gamma": (hidden_size,), f"{OUTPUT}_beta": (hidden_size,)}
    return shapes


def change(
    config: "AdapterConfig",
    values: Mapping[str, Tensor],
    place: Place,
    dropout: Function | None = None,
    stacked: str | None = None,
) -> tf.Tensor:
    """What an adapter adds to a sublayer's output: `scale * bottleneck(source)`.

    With `normalize_output` it is `scale * LayerNorm(bottleneck(source))`.

    The source is the sublayer's output (serial), its input (parallel), or
    LayerNorm(input + output) (`normalize_input`); see `AdapterConfig`.

    Args:
      config: the `AdapterConfig`.
      values: dict from the names of `variable_shapes` to variables or tensors.
      place: the `Place`.
      dropout: function of the bottleneck's result, or None.
      stacked: as in `ops.dense`.

    Returns:
      `[batch, seq, hidden]`, without the residual; of members `[batch, seq, members, hidden]`.
    """
    x, kernels = read(config, values, place, source(config, place), stacked)
    narrow = narrowed(x, kernels, ACTIVATION_FUNCTIONS[config.activation], stacked)
    result = dense(narrow, *up_of(kernels), stacked)
    if config.normalize_output:
        result = normalized(result, values, stacked)
    if dropout is not None:
        result = dropout(result)
    return result if config.scale == 1.0 else result * config.scale


def up_of(kernels: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The kernel and the bias of the projection up."""
    return kernels["up_kernel"], kernels["up_bias"]


def normalized(
    result: tf.Tensor, values: Mapping[str, Tensor], stacked: str | None = None
) -> tf.Tensor:
    """A bottleneck's result after the adapter's LayerNorm of it, float32."""
    gamma, beta = values[f"{OUTPUT}_gamma"], values[f"{OUTPUT}_beta"]
    return layer_norm(tf.cast(result, tf.float32), gamma, beta, OUTPUT_EPSILON, stacked)


def read(
    config: "AdapterConfig",
    values: Mapping[str, Tensor],
    place: Place,
    found: tf.Tensor,
    stacked: str | None = None,
) -> tuple[tf.Tensor, dict[str, Tensor]]:
    """What an adapter reads, and its kernels and biases, all in the compute dtype.

    Args:
      config, values, place, stacked: as in `change`.
      found: what `source` returns.
    """
    dtype = place.output.dtype
    if config.layer_norm:
        found = layer_norm(
            tf.cast(found, place.residual.dtype),
            values["layer_norm_gamma"],
            values["layer_norm_beta"],
            stacked=stacked,
        )
    kernels = {
        name: tf.cast(value, dtype) for name, value in values.items() if "layer_norm" not in name
    }
    return tf.cast(found, dtype), kernels


def source(config: "AdapterConfig", place: Place) -> tf.Tensor:
    """The part of a place that an adapter reads, before a LayerNorm of its own."""
    if config.normalize_input:
        return place.norm(tf.cast(place.output, place.residual.dtype) + place.residual)
    return place.residual if config.placement == "parallel" else place.output


class BottleneckModule(AdapterModule):
    """An adapter in each place that an `AdapterConfig` names.

    Args:
      config: the `AdapterConfig`.
      values: dict from `adapters/layer_I/SUBLAYER/VARIABLE` to variable or tensor.
      dropouts: dict from `adapters/layer_I/SUBLAYER` to a function, or None.
      stacked: as in `ops.dense`.
    """

    def __init__(
        self,
        config: "AdapterConfig",
        values: Mapping[str, Tensor],
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
    ) -> None:
        self.config, self.values, self.stacked = config, values, stacked
        self.dropouts = dropouts or {}

    def adapted(self, place: Place) -> tf.Tensor:
        """The sublayer's output and the adapter's change of it."""
        prefix = f"adapters/layer_{place.layer}/{place.sublayer}"
        values = values_with_prefix(self.values, prefix)
        if not values:
            return super().adapted(place)
        # For profiles; and TensorFlow sums gradients in an order that depends on names.
        with tf.name_scope(f"layer_{place.layer}/{place.sublayer}"):
            return add(
                place, change(self.config, values, place, self.dropouts.get(prefix), self.stacked)
            )


def values_with_prefix(values: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The values whose names begin with a prefix and a slash, by the rest of their names."""
    return {
        name.removeprefix(f"{prefix}/"): value
        for name, value in values.items()
        if name.startswith(f"{prefix}/")
    }
