"""A method that adds products of low rank to queries and values, as LoRA does.

Hu et al. 2022 (arXiv 2106.09685), section 4.
"""

import dataclasses

import tensorflow as tf

from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.registry import ModuleConfig, module_for, register
from adapter_bert_tf.adapters.variable_specs import VariableSpec, values_with_prefix


@register("toy_low_rank")
@dataclasses.dataclass(frozen=True)
class ToyLowRank(ModuleConfig):
    """Two kernels for the queries and two for the values of a block; the second start at zero."""

    stackable = True
    rank: int = 2
    first_layer: int = 0

    def specs(self, sizes):
        hidden = sizes["hidden_size"]
        shapes = {"down": ((hidden, self.rank), 0.3), "up": ((self.rank, hidden), "zeros")}
        return {
            f"adapters/layer_{i}/{projection}/{name}": VariableSpec(shape, "adapters", i, start)
            for i in range(self.first_layer, sizes["num_layers"])
            for projection in ("query", "value")
            for name, (shape, start) in shapes.items()
        }


@module_for(ToyLowRank)
class ToyLowRankModule(AdapterModule):
    """Adds `input down up` to the output of a projection."""

    def projections(self, layer):
        return ("query", "value") if layer >= self.config.first_layer else ()

    def adapt_projection(self, projection):
        dtype = projection.output.dtype
        prefix = f"adapters/layer_{projection.layer}/{projection.name}"
        values = values_with_prefix(self.values, prefix)
        down, up = (tf.cast(values[name], dtype) for name in ("down", "up"))
        return projection.output + tf.matmul(tf.matmul(projection.input, down), up)
