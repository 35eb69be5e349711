"""Several parts side by side in one pass: each for its own share of the rows."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.modules import AdapterModule, Function, Place

OF_ROWS = ("output", "residual", "block_input", "mask")  # The tensors of a `Place`.


class MixedModule(AdapterModule):
    """Parts for equal shares of a batch, one after the other.

    What the base computes it computes once for all rows.

    Args:
      sections: the `Parts` of each share.
    """

    def __init__(self, sections: Sequence[AdapterModule]) -> None:
        self.sections = list(sections)

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        shares = {name: tf.split(value, len(self.sections)) for name, value in inputs.items()}
        return MixedModule(
            [
                parts.for_call({name: values[i] for name, values in shares.items()})
                for i, parts in enumerate(self.sections)
            ]
        )

    def adapted(self, place: Place) -> tf.Tensor:
        count = len(self.sections)
        shares = {name: tf.split(getattr(place, name), count) for name in OF_ROWS}
        norms = place.norm.functions if isinstance(place.norm, Each) else [place.norm] * count
        found = [
            parts.adapted(
                dataclasses.replace(
                    place,
                    norm=norms[i],
                    **{name: values[i] for name, values in shares.items()},
                )
            )
            for i, parts in enumerate(self.sections)
        ]
        return tf.concat(found, 0)

    def norm(self, name: str, own: Any) -> Function:
        return _each([parts.norm(name, own) for parts in self.sections])

    def pooler(self, own: Function) -> Function:
        return _each([parts.pooler(own) for parts in self.sections])


class Each:
    """Functions, each for its share of the rows.

    Args:
      functions: of `[rows, ...]`.
    """

    def __init__(self, functions: Sequence[Function]) -> None:
        self.functions = list(functions)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        shares = tf.split(x, len(self.functions))
        return tf.concat([f(share) for f, share in zip(self.functions, shares, strict=True)], 0)


def _each(functions: Sequence[Function]) -> Function:
    """`Each`, or the one function if all are the same."""
    same = all(function is functions[0] for function in functions)
    return functions[0] if same else Each(functions)
