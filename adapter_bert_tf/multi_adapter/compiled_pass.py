"""Compiled forward passes, by XLA for the shapes that come often."""

import collections
import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import tensorflow as tf

from adapter_bert_tf.adapters.ops import compiled
from adapter_bert_tf.data.padding import FEW_LENGTHS, padded_lengths
from adapter_bert_tf.training.device.compilation import CompiledStep, announced

AFTER = 8  # Calls without XLA. A few texts are answered sooner than a program is compiled.
Cut: TypeAlias = Callable[[tf.Tensor, int], tf.Tensor]
FEW_ROWS = tuple(8 * 2**power for power in range(12))


class TracedPass:
    """A function of inputs, values and more, traced once for any number of rows and any length.

    A `tf.function` by itself is traced for the first shapes, then for others, and for any, with
    warnings. Here the first call names no sizes, so every call has the same graph.

    Args:
      run: function of a dict of inputs, each `[batch, ...]` or `[batch, seq, ...]`, of values, any
        structure of tensors, and of indices `[batch]`; the last ones may be left out.
      stacked: whether the values have a leading `[batch]` or `[tasks]`.
    """

    def __init__(self, run: Callable[..., Any], stacked: bool = False) -> None:
        self._run: Any = compiled(run, reduce_retracing=True)
        self._free_sizes = (2, int(stacked), 1)  # Of inputs, values and indices.
        self._traced: set[tuple[str, ...]] = set()

    def __call__(self, inputs: Mapping[str, Any], *more: Any) -> Any:
        arguments, names = (dict(inputs), *more), tuple(sorted(inputs))
        if names not in self._traced and tf.executing_eagerly():
            specs = [
                tf.nest.map_structure(functools.partial(_any_size, sizes), argument)
                for sizes, argument in zip(self._free_sizes, arguments, strict=False)
            ]
            self._run.get_concrete_function(*specs)
            self._traced.add(names)
        return self._run(*arguments)


def _any_size(sizes: int, value: Any) -> tf.TensorSpec:
    """The type of a tensor or array without its first sizes."""
    known = [None if i < sizes else size for i, size in enumerate(value.shape)]
    return tf.TensorSpec(known, tf.as_dtype(value.dtype))


class CompiledPass:
    """Logits of inputs with the weights of a task, for few shapes by XLA and for others without it.

    Rows and lengths are padded to few numbers, and the padding is removed from the results.

    Args:
      run: function of inputs, values and more, which returns float32 `[batch, ...]`.
      longest: number of positions of the base.
      cut: `TaskType.without_padding`, a function of outputs and a length.
    """

    def __init__(self, run: Callable[..., tf.Tensor], longest: int, cut: Cut) -> None:
        self._plain = TracedPass(run)
        self._step = CompiledStep(
            lambda batch: run(*batch), "prediction step", compiling=_announced
        )
        self._longest, self._cut = longest, cut
        self._calls: collections.Counter[tuple[int, int]] = collections.Counter()

    def __call__(
        self, inputs: Mapping[str, tf.Tensor], values: Mapping[str, tf.Tensor], *more: Any
    ) -> tf.Tensor:
        if more or not tf.executing_eagerly():
            return self._plain(inputs, values, *more)
        rows, length = inputs["input_word_ids"].shape
        shape = (
            int(padded_lengths(rows, FEW_ROWS, max(FEW_ROWS[-1], rows))),
            int(padded_lengths(length, FEW_LENGTHS, self._longest)),
        )
        self._calls[shape] += 1
        if self._calls[shape] <= AFTER:
            return self._plain(inputs, values)
        logits = self._step(({name: _pad(x, shape) for name, x in inputs.items()}, values))
        return self._cut(logits[:rows], length)


def _pad(x: tf.Tensor, shape: tuple[int, int]) -> tf.Tensor:
    """Pads `[batch, ...]` or `[batch, seq, ...]` with zeros to the rows and the length."""
    more = [[0, wanted - size] for wanted, size in zip(shape, x.shape, strict=False)]
    return tf.pad(x, more + [[0, 0]] * (x.shape.rank - len(more)))


def _announced(what: str, size: int) -> Any:
    """Announces on standard error: the answers may go to standard output."""
    return announced(what, size, lambda line: print(line, file=sys.stderr, flush=True))
