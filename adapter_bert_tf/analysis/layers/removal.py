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


class Without(WrappedModule):
    """A module without its changes of some sublayers; its LayerNorms and pooler remain.

    Args:
      inner: `AdapterModule`.
      sublayers: of `SUBLAYERS`.
    """

    def __init__(self, inner: AdapterModule, sublayers: Collection[str]) -> None:
        super().__init__(inner)
        self.sublayers = sublayers

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        removed = sublayer.name in self.sublayers
        return sublayer.unchanged() if removed else self.inner.adapt_sublayer(sublayer)

    def projections(self, layer: int) -> set[str]:
        removed = {name for sublayer in self.sublayers for name in PROJECTIONS[sublayer]}
        return set(self.inner.projections(layer)) - removed


def span_outputs(
    encoder: TaskEncoder,
    inputs: dict[str, tf.Tensor],
    sublayers: Collection[str],
    output_range: int | None,
    at_once: int,
) -> dict[Span, tf.Tensor]:
    """What the last block says, with nothing removed and for each span.

    Spans share what they have in common: below its first layer a span is the whole adapter, and the
    states of several spans go through a block as one batch. Those with nothing and with everything
    removed go alone: a product of more rows may round otherwise, and these are to be exact.

    Args:
      encoder: `TaskEncoder` of an adapter.
      inputs: dict of int32 `[batch, seq]`.
      sublayers: whose changes are removed, of `SUBLAYERS`.
      output_range: as of `AdapterBertEncoder.call`.
      at_once: the most states in one batch.

    Returns:
      dict from `NOTHING` and (first, last) to float32 `[batch, output_range or seq, hidden]`.
    """
    base, whole = encoder.encoder, encoder.module()
    less = Without(whole, sublayers)
    mask = inputs["input_mask"][:, tf.newaxis, :]
    states = {NOTHING: base.embed(inputs, whole)}
    last = len(base.blocks) - 1
    for layer, block in enumerate(base.blocks):
        found: dict[Span, tf.Tensor] = {}
        for module, steps in ((whole, _keeping(states, layer)), (less, _removing(states, layer))):
            for group in _groups(steps, at_once):
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
                found |= dict(zip(after, tf.split(x, len(group)), strict=True))
        states = found
    return {(first, _end(first, end, last)): x for (first, end), x in states.items()}


def _is_open(span: Span) -> bool:
    return span != NOTHING and span[1] == OPEN


def _end(first: int, end: int, last: int) -> int:
    return last if _is_open((first, end)) else end


def _keeping(states: Iterable[Span], layer: int) -> list[Step]:
    """What states become at a layer that keeps its adapters: spans that were open end below it."""
    return [(s, (s[0], layer - 1) if _is_open(s) else s) for s in states]


def _removing(states: Iterable[Span], layer: int) -> list[Step]:
    """What they become at a layer that loses them: open spans go on, and one begins."""
    return [*((s, s) for s in states if _is_open(s)), (NOTHING, (layer, OPEN))]


def _groups(steps: list[Step], at_once: int) -> Iterator[list[Step]]:
    """Yields the steps in groups; those with nothing and with everything removed are alone."""
    alone = [step for step in steps if step[1] in (NOTHING, (0, OPEN))]
    others = [step for step in steps if step not in alone]
    yield from ([step] for step in alone)
    for start in range(0, len(others), at_once):
        yield others[start : start + at_once]
