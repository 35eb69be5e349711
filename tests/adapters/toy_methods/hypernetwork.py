"""A method that generates the adapters of each task from a vector of the task."""

import dataclasses

import tensorflow as tf

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.adapters.registry import ModuleConfig, module_for, register
from adapter_bert_tf.adapters.variable_specs import VariableSpec, values_with_prefix


@register("toy_hypernetwork")
@dataclasses.dataclass(frozen=True)
class ToyHypernetwork(ModuleConfig):
    """Adapters whose weights are generated from a vector of the task, another task each row."""

    tasks: int = 3
    vector_size: int = 5
    bottleneck_size: int = 4

    def specs(self, sizes):
        generators = {
            f"adapters/generators/{name}": VariableSpec(
                (self.vector_size, *spec.shape), "adapters", spec.layer, 0.1
            )
            for name, spec in AdapterConfig(self.bottleneck_size).specs(sizes).items()
        }
        vectors = VariableSpec((self.tasks, self.vector_size), "adapters", start=1.0)
        return {"adapters/tasks/vectors": vectors} | generators


@module_for(ToyHypernetwork)
class ToyHypernetworkModule(AdapterModule):
    """Generates the weights of all adapters; the inputs of a call have `task_ids`, `[batch]`."""

    def for_call(self, inputs):
        zeros = tf.zeros_like(inputs["input_mask"][:, 0])
        vectors = self.values["adapters/tasks/vectors"]
        vectors = tf.gather(vectors, inputs.get("task_ids", zeros))
        generators = values_with_prefix(self.values, "adapters/generators")
        rows = {name: tf.tensordot(vectors, kernel, 1) for name, kernel in generators.items()}
        return AdapterConfig(self.config.bottleneck_size).module(rows, stacked=ROWS)
