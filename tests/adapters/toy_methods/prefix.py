"""A method that puts trained keys and values in front of the base's, as prefix tuning does.

Li & Liang 2021 (arXiv 2101.00190), section 4.
"""

import dataclasses

import tensorflow as tf

from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.adapters.registry import ModuleConfig, module_for, register
from adapter_bert_tf.adapters.variable_specs import VariableSpec


@register("toy_prefix")
@dataclasses.dataclass(frozen=True)
class ToyPrefix(ModuleConfig):
    """Keys and values of some positions in each block."""

    stackable = True
    positions: int = 3

    def specs(self, sizes):
        shape = (self.positions, sizes["hidden_size"])
        return {
            f"adapters/layer_{i}/{name}/prefix": VariableSpec(shape, "adapters", i, 0.3)
            for i in range(sizes["num_layers"])
            for name in ("key", "value")
        }


@module_for(ToyPrefix)
class ToyPrefixModule(AdapterModule):
    """Puts its positions in front of those of every row."""

    def projections(self, layer):
        return ("key", "value")

    def adapt_projection(self, projection):
        output = projection.output
        prefix = self.values[f"adapters/layer_{projection.layer}/{projection.name}/prefix"]
        if self.stacked != ROWS:
            prefix = tf.repeat(prefix[tf.newaxis], tf.shape(output)[0], 0)
        return tf.concat([tf.cast(prefix, output.dtype), output], 1)
