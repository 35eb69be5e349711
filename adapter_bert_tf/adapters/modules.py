"""Adapter modules: the computations that a method adds to the base in one call.

A module may change what a sublayer adds to the skip connection (`adapt_sublayer`), the output of
any projection inside it (`adapt_projection`), the embeddings, LayerNorms and the pooler.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from adapter_bert_tf.adapters.ops import Range, Tensor, dense, layer_norm
from adapter_bert_tf.adapters.variable_specs import POOLER
from adapter_bert_tf.lazy import tf

Function: TypeAlias = Callable[["tf.Tensor"], "tf.Tensor"]
# The input with the output of an encoder's frozen layers, where that is known before the call.
FROZEN_OUTPUT = "frozen_output"
# The projections of each sublayer that a module can change, in the order of their computation.
PROJECTIONS = {
    "attention": ("query", "key", "value", "attention_output"),
    "feed_forward": ("intermediate", "activation", "output"),
}


def sublayers_of(projections: Collection[str]) -> tuple[str, ...]:
    """The sublayers of some projections."""
    return tuple(s for s, names in PROJECTIONS.items() if not set(names).isdisjoint(projections))


@dataclasses.dataclass(frozen=True)
class Sublayer:
    """A sublayer of a block during a call: all values that a module may depend on.

    Args:
      layer: index of the block, from 0.
      name: `attention` or `feed_forward`.
      output: `[batch, seq, hidden]`, the sublayer's output after its dropout, in the compute dtype.
      residual: `[batch, seq, hidden]`, the sublayer's input, float32 as the skip connection is.
      norm: the LayerNorm that the block applies to `residual + output`.
      block_input: `[batch, all positions, hidden]`, also where the block computes fewer.
      mask: `[batch, 1 or seq, all positions]`, 1 for what may be attended to.
      in_training: dict from float32 activation functions to those to use in their place; empty
        outside training.
      output_range: which positions the block computes, as of `ops.chosen`.
    """

    layer: int
    name: str
    output: tf.Tensor
    residual: tf.Tensor
    norm: Function
    block_input: tf.Tensor
    mask: tf.Tensor
    in_training: Mapping[Function, Function] = dataclasses.field(default_factory=dict)
    output_range: Range = None

    def unchanged(self) -> tf.Tensor:
        """The output in the dtype of the skip connection."""
        return tf.cast(self.output, self.residual.dtype)

    def changed_by(self, change: tf.Tensor) -> tf.Tensor:
        """The output plus a change, added in the dtype of the skip connection: not rounded."""
        return tf.add_n([self.unchanged(), tf.cast(change, self.residual.dtype)])


@dataclasses.dataclass(frozen=True)
class Projection:
    """A dense layer of a block, or the activation after one, during a call.

    Args:
      layer: index of the block, from 0.
      name: one of `PROJECTIONS`. `intermediate` is the feed-forward sublayer's first dense layer
        before the activation, `activation` the result of the activation.
      input: `[batch, positions, size]`, in the dtype of the output.
      output: `[batch, positions, width]`, with the bias, in the compute dtype; an activation is
        float32 in every compute dtype. Queries, keys and values have their heads side by side,
        so `width` is `hidden`.
      mask: `[batch, 1 or seq, all positions]`, 1 for what may be attended to.
    """

    layer: int
    name: str
    input: tf.Tensor
    output: tf.Tensor
    mask: tf.Tensor


@dataclasses.dataclass(frozen=True)
class DenseChange:
    """A dense layer with the output `(x W + dropout(x) a b + bias) * scale`.

    None leaves a part out; heads are side by side.

    Args:
      a, b: `[inputs, rank]` and `[rank, outputs]`.
      scale: `[outputs]`.
      dropout: applied to the input of `a`.
    """

    a: Tensor | None = None
    b: Tensor | None = None
    scale: Tensor | None = None
    dropout: Function | None = None


class AdapterModule:
    """The computation of a method in a call; this class leaves the base as it is.

    Args:
      config: the method's `ModuleConfig`.
      values: dict from the names of the configuration's `specs` to variables or tensors; other
        names are ignored.
      dropouts: dict from the names of its `new_dropouts` to functions, which return their argument
        outside training; None for values that are not trained.
      stacked: `ops.ROWS` if all values have a leading `[batch]`; only if the method is `stackable`.
    """

    def __init__(
        self,
        config: Any = None,
        values: Mapping[str, Tensor] | None = None,
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
    ) -> None:
        self.config, self.stacked = config, stacked
        self.values, self.dropouts = values or {}, dropouts or {}

    @property
    def reads_all_positions(self) -> bool:
        """Whether blocks must compute all positions, even where only the first is used."""
        return False

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        """The module of one call with these inputs; the encoder asks for it before anything else.

        It is a new object where it depends on the inputs, so that calls share no state.
        """
        return self

    def adapt_embeddings(self, x: tf.Tensor) -> tf.Tensor:
        """What the first block gets instead of the embeddings, float32 `[batch, seq, hidden]`."""
        return x

    def invert(self, x: tf.Tensor) -> tf.Tensor:
        """Undoes `adapt_embeddings`, before a decoder that is tied to the embeddings."""
        return x

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        """What the block adds to the skip connection, `[batch, seq, hidden]`."""
        return sublayer.unchanged()

    def sublayer_input(self, sublayer: Sublayer) -> tf.Tensor:
        """What `adapt_sublayer` computes its change from, `[batch, seq, hidden]`."""
        return sublayer.output

    def projections(self, layer: int) -> Collection[str]:
        """Names of the projections of a block, from 0, that `adapt_projection` changes."""
        return ()

    def adapt_projection(self, projection: Projection) -> tf.Tensor:
        """The output that the block uses instead of the projection's, of the same shape.

        Keys and values may have more positions, the same number in front of both; every query
        attends to them.
        """
        return projection.output

    def dense_changes(self, layer: int) -> Mapping[str, DenseChange]:
        """The projections of `projections(layer)` whose change has this form, for all rows alike.

        If these are all that change in attention, a block uses them instead of `adapt_projection`,
        and attention takes its fast path.
        """
        return {}

    def norm(self, name: str, base_norm: Any) -> Function:
        """The LayerNorm of a common name; `base_norm` is the base's layer."""
        return base_norm

    def pooler(self, base_pooler: Function) -> Function:
        """The pooler, a function of `[batch, hidden]`."""
        return base_pooler


def projection_output(module: AdapterModule, projection: Projection) -> tf.Tensor:
    """The output of a projection with the module's change, in the same dtype."""
    dtype = projection.output.dtype
    if projection.name not in module.projections(projection.layer):
        return projection.output
    projection = dataclasses.replace(projection, input=tf.cast(projection.input, dtype))
    return tf.cast(module.adapt_projection(projection), dtype)


class WrappedModule(AdapterModule):
    """Another module, of which a subclass changes something."""

    def __init__(self, inner: AdapterModule) -> None:
        super().__init__()
        self.inner = inner

    @property
    def reads_all_positions(self) -> bool:
        return self.inner.reads_all_positions

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        wrapped = copy.copy(self)
        wrapped.inner = self.inner.for_call(inputs)
        return wrapped

    def adapt_embeddings(self, x: tf.Tensor) -> tf.Tensor:
        return self.inner.adapt_embeddings(x)

    def invert(self, x: tf.Tensor) -> tf.Tensor:
        return self.inner.invert(x)

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        return self.inner.adapt_sublayer(sublayer)

    def sublayer_input(self, sublayer: Sublayer) -> tf.Tensor:
        return self.inner.sublayer_input(sublayer)

    def projections(self, layer: int) -> Collection[str]:
        return self.inner.projections(layer)

    def adapt_projection(self, projection: Projection) -> tf.Tensor:
        return self.inner.adapt_projection(projection)

    def norm(self, name: str, base_norm: Any) -> Function:
        return self.inner.norm(name, base_norm)

    def pooler(self, base_pooler: Function) -> Function:
        return self.inner.pooler(base_pooler)


class ReplacingModule(WrappedModule):
    """A module that also replaces LayerNorms and the pooler of the base.

    `norms` maps a common name to a function of the base's layer that returns the LayerNorm;
    `new_pooler` is a function of `[batch, hidden]`, or None for the base's.
    """

    def __init__(
        self,
        inner: AdapterModule,
        norms: Mapping[str, Callable[[Any], Function]],
        new_pooler: Function | None,
    ) -> None:
        super().__init__(inner)
        self.norms, self.new_pooler = norms, new_pooler

    def dense_changes(self, layer: int) -> Mapping[str, DenseChange]:
        return self.inner.dense_changes(layer)

    def norm(self, name: str, base_norm: Any) -> Function:
        return self.norms[name](base_norm) if name in self.norms else base_norm

    def pooler(self, base_pooler: Function) -> Function:
        return self.new_pooler or base_pooler


def module_from_values(
    config: Any, values: Mapping[str, Tensor], stacked: str | None = None
) -> AdapterModule:
    """A module whose values come with the call, the same for all rows or one for each row.

    Args:
      config: `ModuleConfig`, or None if no sublayer is changed.
      values: dict from common name to tensor: the names of the configuration's `specs`, and those
        of LayerNorms and a pooler that replace the base's.
      stacked: `ops.ROWS` if all values have a leading `[batch]`, else None.
    """
    inner = config.module(values, stacked=stacked) if config else AdapterModule()
    gammas = [name.removesuffix("/gamma") for name in values if name.endswith("/LayerNorm/gamma")]
    norms = {name: functools.partial(_norm, values, name, stacked) for name in gammas}
    has_pooler = f"{POOLER}/kernel" in values
    pooler = functools.partial(_pooler, values, stacked) if has_pooler else None
    return ReplacingModule(inner, norms, pooler)


def _norm(values: Mapping[str, Tensor], name: str, stacked: str | None, base_norm: Any) -> Function:
    gamma, beta = values[f"{name}/gamma"], values[f"{name}/beta"]
    return lambda x: layer_norm(tf.cast(x, tf.float32), gamma, beta, base_norm.epsilon, stacked)


def _pooler(values: Mapping[str, Tensor], stacked: str | None, x: tf.Tensor) -> tf.Tensor:
    return tf.tanh(dense(x, values[f"{POOLER}/kernel"], values[f"{POOLER}/bias"], stacked))
