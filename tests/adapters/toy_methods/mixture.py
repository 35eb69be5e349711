"""A method that adds the weighted outputs of two frozen adapters."""

import dataclasses

import tensorflow as tf

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.bottleneck import adapter_output
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import MEMBERS
from adapter_bert_tf.adapters.registry import ModuleConfig, module_for, register
from adapter_bert_tf.adapters.variable_specs import VariableSpec, values_with_prefix


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
