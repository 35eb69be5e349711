"""A method that multiplies keys, values and activations by vectors, as (IA)^3 does.

Liu et al. 2022 (arXiv 2205.05638), section 3.3.
"""

import dataclasses

import tensorflow as tf

from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.adapters.registry import ModuleConfig, module_for, register
from adapter_bert_tf.adapters.variable_specs import VariableSpec


@register("toy_rescaling")
@dataclasses.dataclass(frozen=True)
class ToyRescaling(ModuleConfig):
    """A vector for each of three projections of a block; all start at one."""

    stackable = True

    def specs(self, sizes):
        hidden, inner = sizes["hidden_size"], sizes["inner_dim"]
        return {
            f"adapters/layer_{i}/{name}/scale": VariableSpec((size,), "adapters", i, "ones")
            for i in range(sizes["num_layers"])
            for name, size in {"key": hidden, "value": hidden, "activation": inner}.items()
        }


@module_for(ToyRescaling)
class ToyRescalingModule(AdapterModule):
    """Multiplies each position of a projection by its vector."""

    def projections(self, layer):
        return ("key", "value", "activation")

    def adapt_projection(self, projection):
        scale = self.values[f"adapters/layer_{projection.layer}/{projection.name}/scale"]
        scale = scale[:, tf.newaxis] if self.stacked == ROWS else scale
        return projection.output * tf.cast(scale, projection.output.dtype)
