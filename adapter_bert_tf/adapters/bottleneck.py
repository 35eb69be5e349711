"""The bottleneck: the computation of Houlsby's, Pfeiffer's and parallel adapters."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import tensorflow as tf

from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, Tensor, dense, layer_norm
from adapter_bert_tf.adapters.parts import Function, Parts, Place, add

if TYPE_CHECKING:
    from adapter_bert_tf.adapters.config import AdapterConfig


def bottleneck(
    x: tf.Tensor,
    down_kernel: Tensor,
    down_bias: Tensor,
    up_kernel: Tensor,
    up_bias: Tensor,
    activation: Callable[[tf.Tensor], tf.Tensor],
    middle: tuple[Tensor, Tensor] | None = None,
    stacked: str | None = None,
) -> tf.Tensor:
    """Projects down, applies the nonlinearity, projects up (Houlsby et al. 2019, section 2.1).

    Args:
      x: float `[batch, seq, hidden]`.
      down_kernel: `[hidden, bottleneck]`; this and all others stacked as in `ops.dense`.
      down_bias: `[bottleneck]`.
      up_kernel: `[bottleneck, hidden]`.
      up_bias: `[hidden]`.
      activation: function of a tensor.
      middle: kernel `[bottleneck, bottleneck]` and bias of a second layer, or None.
      stacked: as in `ops.dense`.

    Returns:
      `[batch, seq, hidden]` in the dtype of `x`, without the skip connection; of members
      `[batch, seq, members, hidden]`.
    """
    narrow = activation(dense(x, down_kernel, down_bias, stacked))
    if middle is not None:
        narrow = activation(dense(narrow, *middle, stacked))
    return dense(narrow, up_kernel, up_bias, stacked)


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
    return shapes


def change(
    config: "AdapterConfig",
    values: Mapping[str, Tensor],
    place: Place,
    dropout: Function | None = None,
    stacked: str | None = None,
) -> tf.Tensor:
    """What an adapter adds to a sublayer's output: `scale * bottleneck(source)`.

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
    dtype = place.output.dtype
    source = tf.cast(_source(config, values, place, stacked), dtype)
    kernels = {
        name: tf.cast(value, dtype)
        for name, value in values.items()
        if not name.startswith("layer_norm")
    }
    middle = (kernels["middle_kernel"], kernels["middle_bias"]) if config.depth == 2 else None
    result = bottleneck(
        source,
        kernels["down_kernel"],
        kernels["down_bias"],
        kernels["up_kernel"],
        kernels["up_bias"],
        ACTIVATION_FUNCTIONS[config.activation],
        middle,
        stacked,
    )
    if dropout is not None:
        result = dropout(result)
    return result if config.scale == 1.0 else result * config.scale


def _source(
    config: "AdapterConfig", values: Mapping[str, Tensor], place: Place, stacked: str | None
) -> tf.Tensor:
    source = place.residual if config.placement == "parallel" else place.output
    if config.normalize_input:
        source = place.norm(tf.cast(place.output, place.residual.dtype) + place.residual)
    if config.layer_norm:
        source = layer_norm(
            tf.cast(source, place.residual.dtype),
            values["layer_norm_gamma"],
            values["layer_norm_beta"],
            stacked=stacked,
        )
    return source


class BottleneckParts(Parts):
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
        values = under(self.values, prefix)
        if not values:
            return super().adapted(place)
        # For profiles; and TensorFlow sums gradients in an order that depends on names.
        with tf.name_scope(f"layer_{place.layer}/{place.sublayer}"):
            return add(
                place, change(self.config, values, place, self.dropouts.get(prefix), self.stacked)
            )


def under(values: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The values whose names begin with a prefix and a slash, by the rest of their names."""
    return {
        name.removeprefix(f"{prefix}/"): value
        for name, value in values.items()
        if name.startswith(f"{prefix}/")
    }
