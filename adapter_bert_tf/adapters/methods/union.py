"""Several methods at once, such as the mix-and-match adapter."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from adapter_bert_tf.adapters.modules import (
    PROJECTIONS,
    AdapterModule,
    Function,
    Projection,
    Sublayer,
    projection_output,
)
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.registry import ModuleConfig, module_for, register, require
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec
from adapter_bert_tf.lazy import tf

NAME = "union"
MOST_MEMBERS = 8


@register(NAME)
@dataclasses.dataclass(frozen=True)
class UnionConfig(ModuleConfig):
    """Several methods in one model, as in He et al. 2022, section 4.6.

    Each changes what those before it leave; positions of a prefix are added last. `size` and
    `init_scale` of a union are those of its last method, `layers` are those of all.

    Args:
      members: configurations of the methods, or dicts. Their variables have different names.

    Raises:
      InputError: for other than 2 to 8 methods, or one that is not `stackable`.
    """

    stackable: ClassVar[bool] = True
    composite: ClassVar[bool] = True
    why_unmerged: ClassVar[str] = "only LoRA and (IA)^3 by themselves can be"
    adjustable: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ("size", "layers", "init_scale"), ("members",)
    )

    members: tuple[ModuleConfig, ...]

    def __post_init__(self) -> None:
        given: Any = self.members
        known = isinstance(given, list | tuple) and 2 <= len(given) <= MOST_MEMBERS
        message = f"members must be 2 to {MOST_MEMBERS} configurations of methods such as LoRA"
        require("Union config", known and not any(_is_union(m) for m in given), message, given)
        members = tuple(ModuleConfig.from_dict(m) if isinstance(m, Mapping) else m for m in given)
        known = all(isinstance(m, ModuleConfig) and m.stackable for m in members)
        require("Union config", known, message, given)
        object.__setattr__(self, "members", members)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """The variables of all methods."""
        specs: dict[str, VariableSpec] = {}
        for member in self.members:
            own = member.specs(sizes)
            both = sorted(own.keys() & specs.keys())
            message = "the variables of two members must have different names"
            require("Union config", not both, message, both)
            specs |= own
        return specs

    @property
    def changed_sublayers(self) -> tuple[str, ...]:
        changed = {name for member in self.members for name in member.changed_sublayers}
        return tuple(name for name in PROJECTIONS if name in changed)

    @property
    def factors(self) -> tuple[str, ...]:
        return next((member.factors for member in self.members if member.factors), ())

    @property
    def changes_embeddings(self) -> bool:
        return any(member.changes_embeddings for member in self.members)

    @property
    def layers(self) -> tuple[int, ...] | None:
        """The layers that members name; None if none names any."""
        named = [getattr(member, "layers", None) or () for member in self.members]
        return tuple(sorted({layer for layers in named for layer in layers})) or None

    @property
    def adds_positions(self) -> bool:
        return any(member.adds_positions for member in self.members)

    @property
    def learning_rate(self) -> float | None:
        """The lowest that a member has."""
        return min((m.learning_rate for m in self.members if m.learning_rate), default=None)

    def adjusted(self, **values: Any) -> UnionConfig:
        members = list(self.members)
        for name, value in values.items():
            last = len(members) - 1
            members = [
                member.adjusted(**{name: value})
                if i == last or (name == "layers" and name in member.adjustable)
                else member
                for i, member in enumerate(members)
            ]
        return dataclasses.replace(self, members=tuple(members))

    def adjusted_like(self, other: ModuleConfig, names: Collection[str]) -> UnionConfig:
        if not isinstance(other, UnionConfig) or len(other.members) != len(self.members):
            return self
        both = zip(self.members, other.members, strict=True)
        return UnionConfig(tuple(own.adjusted_like(theirs, names) for own, theirs in both))

    def without_lowest(self, count: int, num_layers: int) -> UnionConfig:
        return UnionConfig(tuple(m.without_lowest(count, num_layers) for m in self.members))

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        """Those of the members, below their numbers."""
        return {
            f"{i}/{name}": rate
            for i, member in enumerate(self.members)
            for name, rate in member.dropout_rates(sizes).items()
        }

    def sizes(self, num_layers: int) -> tuple[int, ...]:
        return self.members[-1].sizes(num_layers)

    def stored_config(self) -> UnionConfig:
        return UnionConfig(tuple(member.stored_config() for member in self.members))

    def stored_values(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        for member in self.members:
            values = member.stored_values(values)
        return dict(values)

    def weighted_sum(
        self, values: Sequence[Mapping[str, np.ndarray]], shares: Sequence[float]
    ) -> tuple[UnionConfig, dict[str, np.ndarray]]:
        """The sums of the members that have one."""
        members, sums = [], dict[str, np.ndarray]()
        for member in self.members:
            own = [member.factor_values(each) for each in values]
            summed = member.weighted_sum(own, shares)
            members.append(summed[0] if summed else member)
            sums |= summed[1] if summed else {}
        return UnionConfig(tuple(members)), sums

    def summary(self) -> str:
        return "; ".join(member.summary() for member in self.members)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "members": [member.to_dict() for member in self.members]}


def _is_union(member: Any) -> bool:
    kind = member.get("kind") if isinstance(member, Mapping) else getattr(member, "kind", None)
    return kind == NAME


@module_for(UnionConfig)
class UnionModule(AdapterModule):
    """The modules of all methods, in order."""

    def __init__(
        self,
        config: Any,
        values: Mapping[str, Tensor] | None = None,
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
        members: Sequence[AdapterModule] | None = None,
    ) -> None:
        super().__init__(config, values, dropouts, stacked)
        self.members = members or [
            member.module(self.values, self._dropouts_of(i), stacked)
            for i, member in enumerate(config.members)
        ]

    @property
    def reads_all_positions(self) -> bool:
        return any(member.reads_all_positions for member in self.members)

    def _dropouts_of(self, index: int) -> dict[str, Function]:
        prefix = f"{index}/"
        return {
            name.removeprefix(prefix): dropout
            for name, dropout in self.dropouts.items()
            if name.startswith(prefix)
        }

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        members = [member.for_call(inputs) for member in self.members]
        return UnionModule(self.config, self.values, self.dropouts, self.stacked, members)

    def adapt_embeddings(self, x: tf.Tensor) -> tf.Tensor:
        for member in self.members:
            x = member.adapt_embeddings(x)
        return x

    def invert(self, x: tf.Tensor) -> tf.Tensor:
        for member in reversed(self.members):
            x = member.invert(x)
        return x

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        *members, last = self.members
        for member in members:
            output = tf.cast(member.adapt_sublayer(sublayer), sublayer.output.dtype)
            sublayer = dataclasses.replace(sublayer, output=output)
        return last.adapt_sublayer(sublayer)

    def projections(self, layer: int) -> set[str]:
        return {name for member in self.members for name in member.projections(layer)}

    def adapt_projection(self, projection: Projection) -> tf.Tensor:
        for member in sorted(self.members, key=lambda m: m.config.adds_positions):
            output = projection_output(member, projection)
            projection = dataclasses.replace(projection, output=output)
        return projection.output

    def norm(self, name: str, base_norm: Any) -> Function:
        for member in self.members:
            base_norm = member.norm(name, base_norm)
        return base_norm

    def pooler(self, base_pooler: Function) -> Function:
        for member in self.members:
            base_pooler = member.pooler(base_pooler)
        return base_pooler
