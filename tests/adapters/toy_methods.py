"""Two methods that exist in the tests alone: what it takes to add one."""

import dataclasses

import tensorflow as tf

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.bottleneck import change, values_with_prefix
from adapter_bert_tf.adapters.modules import AdapterModule, add
from adapter_bert_tf.adapters.ops import MEMBERS, ROWS
from adapter_bert_tf.adapters.registry import ModuleConfig, register
from adapter_bert_tf.adapters.variable_specs import VariableSpec


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

    def parts(self, values, dropouts=None, stacked=None):
        return Generating(self, values)


class Generating(AdapterModule):
    """Generates the weights of all places once a call; its inputs have `task_ids`, `[batch]`."""

    def __init__(self, config, values):
        self.adapter = AdapterConfig(config.bottleneck_size)
        self.vectors = values["adapters/tasks/vectors"]
        self.generators = values_with_prefix(values, "adapters/generators")

    def for_call(self, inputs):
        zeros = tf.zeros_like(inputs["input_mask"][:, 0])
        vectors = tf.gather(self.vectors, inputs.get("task_ids", zeros))
        made = {name: tf.tensordot(vectors, kernel, 1) for name, kernel in self.generators.items()}
        return self.adapter.parts(made, stacked=ROWS)


@register("toy_mixture")
@dataclasses.dataclass(frozen=True)
class ToyMixture(ModuleConfig):
    """Two frozen adapters; in each place it learns how much of either is added."""

    bottleneck_size: int = 4
    groups = ("adapters", "members")

    def specs(self, sizes):
        members = AdapterConfig(self.bottleneck_size, identity_init=False, init_scale=0.3)
        specs = {
            name.replace("adapters/", "members/"): VariableSpec(
                (2, *spec.shape), "members", spec.layer, spec.start
            )
            for name, spec in members.specs(sizes).items()
        }
        places = {name.rpartition("/")[0]: spec.layer for name, spec in specs.items()}
        return specs | {
            f"{place.replace('members/', 'adapters/')}/share": VariableSpec((2,), "adapters", layer)
            for place, layer in places.items()
        }

    def parts(self, values, dropouts=None, stacked=None):
        return Mixing(AdapterConfig(self.bottleneck_size), values)


class Mixing(AdapterModule):
    """Adds the members' changes, each times its share."""

    def __init__(self, adapter, values):
        self.adapter, self.values = adapter, values

    def adapted(self, place):
        name = f"layer_{place.layer}/{place.sublayer}"
        members = values_with_prefix(self.values, f"members/{name}")
        changes = change(self.adapter, members, place, stacked=MEMBERS)
        shares = tf.nn.softmax(self.values[f"adapters/{name}/share"])
        return add(place, tf.einsum("bsnh,n->bsh", changes, tf.cast(shares, changes.dtype)))
