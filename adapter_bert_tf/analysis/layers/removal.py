"""An adapter without its changes in every span of layers, in one pass over the layers."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.modules import AdapterModule, Function, Place
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


class Without(AdapterModule):
    """Parts whose changes of some sublayers are left out; LayerNorms and pooler stay theirs.

    Args:
      parts: `Parts`.
      sublayers: of `SUBLAYERS`.
    """

    def __init__(self, parts: AdapterModule, sublayers: Collection[str]) -> None:
        self.parts, self.sublayers = parts, sublayers

    def adapted(self, place: Place) -> tf.Tensor:
        left_out = place.sublayer in self.sublayers
        return super().adapted(place) if left_out else self.parts.adapted(place)

    def norm(self, name: str, own: Any) -> Function:
        return self.parts.norm(name, own)

    def pooler(self, own: Function) -> Function:
        return self.parts.pooler(own)


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
    base, whole = encoder.encoder, encoder.beside()
    less = Without(whole, sublayers)
    mask = inputs["input_mask"][:, tf.newaxis, :]
    states = {NOTHING: base.embedded(inputs, whole)}
    last = len(base.blocks) - 1
    for layer, block in enumerate(base.blocks):
        found: dict[Span, tf.Tensor] = {}
        for parts, steps in ((whole, _keeping(states, layer)), (less, _removing(states, layer))):
            for group in _groups(steps, at_once):
                x = block(
                    (
                        tf.concat([states[before] for before, _ in group], 0),
                        tf.tile(mask, [len(group), 1, 1]),
                    ),
                    output_range=output_range if layer == last else None,
                    parts=parts,
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
