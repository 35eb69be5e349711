"""An adapter without its changes in every span of layers, in one pass over the layers."""

from collections.abc import Collection, Iterable, Iterator

import tensorflow as tf

from adapter_bert_tf.adapters.modules import PROJECTIONS, AdapterModule, Sublayer, WrappedModule
from adapter_bert_tf.adapters.task_encoder import TaskEncoder

# What is removed: first and last layer; the last is OPEN while layers are still being removed.
Span = tuple[int, int]
Step = tuple[Span, Span]  # A state before a layer, and after it.
OPEN = -1
NOTHING: Span = (OPEN, OPEN)
SUBLAYERS = ("attention", "feed_forward")


def spans(layers: int) -> list[Span]:
    """Every contiguous span of layers, (first, last), from 0."""
    return [(first, last) for first in range(layers) for last in range(first, layers)]


class AblatedModule(WrappedModule):
    """A module without its changes of some of `SUBLAYERS`; its LayerNorms and pooler remain."""

    def __init__(self, inner: AdapterModule, sublayers: Collection[str]) -> None:
        super().__init__(inner)
        self.sublayers = sublayers

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        is_removed = sublayer.name in self.sublayers
        return sublayer.unchanged() if is_removed else self.inner.adapt_sublayer(sublayer)

    def projections(self, layer: int) -> set[str]:
        removed = {name for sublayer in self.sublayers for name in PROJECTIONS[sublayer]}
        return set(self.inner.projections(layer)) - removed


def span_outputs(
    encoder: TaskEncoder,
    inputs: dict[str, tf.Tensor],
    sublayers: Collection[str],
    output_range: int | None,
    spans_per_batch: int,
) -> dict[Span, tf.Tensor]:
    """Outputs of the last block with nothing removed and without each span.

    Below its first layer a span is the whole adapter, and up to `spans_per_batch` states go through
    a block as one batch. Those with nothing and with everything removed are computed alone, because
    a product of more rows may round differently, and these must be exact. Returns a dict from
    `NOTHING` and (first, last) to float32 `[batch, output_range or seq, hidden]`.
    """
    base, whole = encoder.encoder, encoder.module().for_call(inputs)
    ablated = AblatedModule(whole, sublayers)
    mask = inputs["input_mask"][:, tf.newaxis, :]
    states = {NOTHING: base.embed(inputs, whole)}
    last = len(base.blocks) - 1
    for layer, block in enumerate(base.blocks):
        next_states: dict[Span, tf.Tensor] = {}
        groups = [(whole, group) for group in _groups(_kept(states, layer), spans_per_batch)]
        groups += [(ablated, group) for group in _groups(_removed(states, layer), spans_per_batch)]
        for module, group in groups:
            x = block(
                (
                    tf.concat([states[before] for before, _ in group], 0),
                    tf.tile(mask, [len(group), 1, 1]),
                ),
                output_range=output_range if layer == last else None,
                module=module,
                layer=layer,
            )
            after = [span for _, span in group]
            next_states |= dict(zip(after, tf.split(x, len(group)), strict=True))
        states = next_states
    return {(span[0], last) if _is_open(span) else span: x for span, x in states.items()}


def _is_open(span: Span) -> bool:
    return span != NOTHING and span[1] == OPEN


def _kept(states: Iterable[Span], layer: int) -> list[Step]:
    """Steps through a layer that keeps its adapters: open spans end below it."""
    return [(s, (s[0], layer - 1) if _is_open(s) else s) for s in states]


def _removed(states: Iterable[Span], layer: int) -> list[Step]:
    """Steps through a layer that loses its adapters: open spans continue, and one begins."""
    return [*((s, s) for s in states if _is_open(s)), (NOTHING, (layer, OPEN))]


def _groups(steps: list[Step], most: int) -> Iterator[list[Step]]:
    """Yields the steps in groups; those with nothing and with everything removed are alone."""
    alone = [step for step in steps if step[1] in (NOTHING, (0, OPEN))]
    others = [step for step in steps if step not in alone]
    yield from ([step] for step in alone)
    for start in range(0, len(others), most):
        yield others[start : start + most]
