"""What runs beside the base in a call: changes of sublayers, LayerNorms and a pooler instead."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.ops import Tensor, dense, layer_norm
from adapter_bert_tf.adapters.variable_specs import POOLER

Function = Callable[[tf.Tensor], tf.Tensor]
# What an encoder's frozen layers give, where it comes with the inputs of a call.
FROZEN_OUTPUT = "frozen_output"


@dataclasses.dataclass(frozen=True)
class Place:
    """A sublayer of a block while it is computed: all that a change may depend on.

    Args:
      layer: index of the block, from 0.
      sublayer: `attention` or `feed_forward`.
      output: `[batch, seq, hidden]`, the sublayer's output after its dropout, in the compute dtype.
      residual: `[batch, seq, hidden]`, the sublayer's input, float32 as the skip connection is.
      norm: the LayerNorm that the block applies to `residual + output`.
      block_input: `[batch, all positions, hidden]`, also where the block computes fewer.
      mask: `[batch, 1 or seq, all positions]`, 1 for what may be attended to.
    """

    layer: int
    sublayer: str
    output: tf.Tensor
    residual: tf.Tensor
    norm: Function
    block_input: tf.Tensor
    mask: tf.Tensor


def add(place: Place, change: tf.Tensor) -> tf.Tensor:
    """The sublayer's output with a change, in the dtype of the skip connection: not rounded."""
    dtype = place.residual.dtype
    return tf.cast(place.output, dtype) + tf.cast(change, dtype)


class AdapterModule:
    """What the encoder asks for in a call. This one leaves everything to the base."""

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> "AdapterModule":
        """The parts of one call, which has these inputs; asked for once, before anything else."""
        return self

    def adapted(self, place: Place) -> tf.Tensor:
        """What the block adds to the skip connection, `[batch, seq, hidden]`."""
        return tf.cast(place.output, place.residual.dtype)

    def norm(self, name: str, own: Any) -> Function:
        """The LayerNorm of a common name; `own` is the base's layer."""
        return own

    def pooler(self, own: Function) -> Function:
        """The pooler, a function of `[batch, hidden]`; `own` is the base's."""
        return own


class ReplacingModule(AdapterModule):
    """Parts that also put LayerNorms and a pooler in the place of the base's.

    Args:
      changes: `Parts` that change sublayers.
      norms: dict from common name to a function of the base's layer that returns the LayerNorm.
      new_pooler: function of `[batch, hidden]`, or None for the base's.
    """

    def __init__(
        self,
        changes: AdapterModule,
        norms: Mapping[str, Callable[[Any], Function]],
        new_pooler: Function | None,
    ) -> None:
        self.changes, self.norms, self.new_pooler = changes, norms, new_pooler

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        return ReplacingModule(self.changes.for_call(inputs), self.norms, self.new_pooler)

    def adapted(self, place: Place) -> tf.Tensor:
        return self.changes.adapted(place)

    def norm(self, name: str, own: Any) -> Function:
        return self.norms[name](own) if name in self.norms else own

    def pooler(self, own: Function) -> Function:
        return self.new_pooler or own


def module_from_values(
    config: Any, values: Mapping[str, Tensor], stacked: str | None = None
) -> AdapterModule:
    """Parts whose values come with the call, the same for all rows or one for each row.

    Args:
      config: `PartsConfig`, or None if no sublayer is changed.
      values: dict from common name to tensor: what the config's `specs` name, and what replaces the
        base's LayerNorms and pooler. Each in the variable's shape, or all with a leading `[batch]`.
      stacked: None, or `ops.ROWS` for the latter.
    """
    changes = config.parts(values, stacked=stacked) if config else AdapterModule()
    gammas = [name.removesuffix("/gamma") for name in values if name.endswith("/LayerNorm/gamma")]
    norms = {name: functools.partial(_norm, values, name, stacked) for name in gammas}
    replaced = f"{POOLER}/kernel" in values
    return ReplacingModule(
        changes, norms, functools.partial(_pooler, values, stacked) if replaced else None
    )


def _norm(values: Mapping[str, Tensor], name: str, stacked: str | None, own: Any) -> Function:
    gamma, beta = values[f"{name}/gamma"], values[f"{name}/beta"]
    return lambda x: layer_norm(tf.cast(x, tf.float32), gamma, beta, own.epsilon, stacked)


def _pooler(values: Mapping[str, Tensor], stacked: str | None, x: tf.Tensor) -> tf.Tensor:
    return tf.tanh(dense(x, values[f"{POOLER}/kernel"], values[f"{POOLER}/bias"], stacked))
