"""Two methods that exist in the tests alone: what it takes to add one."""

import dataclasses

import tensorflow as tf

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.bottleneck import adapter_output
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import MEMBERS, ROWS
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


@module_for(ToyMixture)
class ToyMixtureModule(AdapterModule):
    """Adds the members' outputs, each times its share."""

    def adapt_sublayer(self, sublayer):
        path = f"layer_{sublayer.layer}/{sublayer.name}"
        members = values_with_prefix(self.values, f"members/{path}")
        config = AdapterConfig(self.config.bottleneck_size)
        outputs = adapter_output(config, members, sublayer, stacked=MEMBERS)
        shares = tf.nn.softmax(self.values[f"adapters/{path}/share"])
        return sublayer.changed_by(
            tf.einsum("bsnh,n->bsh", outputs, tf.cast(shares, outputs.dtype))
        )
