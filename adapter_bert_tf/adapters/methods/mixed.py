"""Several modules in one pass, each for its own share of the rows."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.modules import (
    AdapterModule,
    Function,
    Projection,
    Sublayer,
    projection_output,
)

# The fields of a `Sublayer` and of a `Projection` with rows.
ROW_TENSORS = ("output", "residual", "block_input", "mask")
ROW_TENSORS_OF_PROJECTIONS = ("input", "output", "mask")


class MixedModule(AdapterModule):
    """Modules for equal shares of a batch, in order; the base computes all rows at once."""

    def __init__(self, modules: Sequence[AdapterModule]) -> None:
        super().__init__()
        self.modules = list(modules)

    @property
    def reads_all_positions(self) -> bool:
        return any(module.reads_all_positions for module in self.modules)

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        shares = {name: tf.split(value, len(self.modules)) for name, value in inputs.items()}
        return MixedModule(
            [
                module.for_call({name: values[i] for name, values in shares.items()})
                for i, module in enumerate(self.modules)
            ]
        )

    def adapt_embeddings(self, x: tf.Tensor) -> tf.Tensor:
        functions = [module.adapt_embeddings for module in self.modules]
        return FunctionPerShare(functions)(x)

    def invert(self, x: tf.Tensor) -> tf.Tensor:
        return FunctionPerShare([module.invert for module in self.modules])(x)

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        count, norm = len(self.modules), sublayer.norm
        shares = {name: tf.split(getattr(sublayer, name), count) for name in ROW_TENSORS}
        places = sublayer.output_range
        ranges = tf.split(places, count) if tf.is_tensor(places) else [places] * count
        norms = norm.functions if isinstance(norm, FunctionPerShare) else [norm] * count
        outputs = []
        for i, module in enumerate(self.modules):
            tensors = {name: values[i] for name, values in shares.items()}
            tensors |= {"norm": norms[i], "output_range": ranges[i]}
            share = dataclasses.replace(sublayer, **tensors)
            outputs.append(module.adapt_sublayer(share))
        return tf.concat(outputs, 0)

    def projections(self, layer: int) -> set[str]:
        return {name for module in self.modules for name in module.projections(layer)}

    def adapt_projection(self, projection: Projection) -> tf.Tensor:
        count, names = len(self.modules), ROW_TENSORS_OF_PROJECTIONS
        shares = {name: tf.split(getattr(projection, name), count) for name in names}
        changed = []
        for i, module in enumerate(self.modules):
            tensors = {name: values[i] for name, values in shares.items()}
            changed.append(projection_output(module, dataclasses.replace(projection, **tensors)))
        return tf.concat(changed, 0)

    def norm(self, name: str, base_norm: Any) -> Function:
        return _function_per_share([module.norm(name, base_norm) for module in self.modules])

    def pooler(self, base_pooler: Function) -> Function:
        return _function_per_share([module.pooler(base_pooler) for module in self.modules])


class FunctionPerShare:
    """Applies one function of `[rows, ...]` to each equal share of the rows."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self.functions = list(functions)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        shares = tf.split(x, len(self.functions))
        return tf.concat([f(share) for f, share in zip(self.functions, shares, strict=True)], 0)


def _function_per_share(functions: Sequence[Function]) -> Function:
    """`FunctionPerShare`, or the one function if all are the same."""
    same = all(function is functions[0] for function in functions)
    return functions[0] if same else FunctionPerShare(functions)
