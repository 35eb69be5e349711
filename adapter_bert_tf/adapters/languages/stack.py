"""Stacks: an adapter of a language or a domain below the adapter of a task."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from adapter_bert_tf.adapters.methods.union import UnionModule
from adapter_bert_tf.adapters.modules import PROJECTIONS, Function
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.registry import ModuleConfig, module_for, register, require
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec, values_with_prefix
from adapter_bert_tf.sanitize import printable

BELOW = "below"  # Group of the lower adapter's variables, and the first part of their names.


@register("stack")
@dataclasses.dataclass(frozen=True)
class StackConfig(ModuleConfig):
    """An adapter on top of a frozen one (Pfeiffer et al. 2020, MAD-X, section 4.2).

    In each sublayer the upper adapter changes what the lower one leaves. Another lower one may take
    its place: the adapter directory names it by digest and holds no copy of it.

    Args:
      below: configuration of the lower adapter, or a dict.
      above: of the upper one, which is trained.
      name: of the lower adapter.

    Raises:
      InputError: if they cannot be stacked, for example in the wrong order.
    """

    groups: ClassVar[tuple[str, ...]] = ("adapters", BELOW)
    borrowed_groups: ClassVar[tuple[str, ...]] = (BELOW,)
    stackable: ClassVar[bool] = True
    composite: ClassVar[bool] = True
    why_unmerged: ClassVar[str] = "a stack has adapters of its own and of another task"
    adjustable: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ("size", "layers", "init_scale"), ("above",)
    )

    below: ModuleConfig
    above: ModuleConfig
    name: str = dataclasses.field(repr=False)  # Of no effect: see `contents.computation`.

    def __post_init__(self) -> None:
        for part in ("below", "above"):
            value: Any = getattr(self, part)
            value = ModuleConfig.from_dict(value) if isinstance(value, Mapping) else value
            object.__setattr__(self, part, value)
            known = isinstance(value, ModuleConfig) and value.stackable
            known = known and not value.borrowed_groups
            message = f"{part} must be the configuration of a method such as pfeiffer"
            require("Stack config", known, message, value)
        message = "only the lower adapter may change the embeddings; choose an upper one without"
        require("Stack config", not self.above.changes_embeddings, message, self.above.summary())
        named = isinstance(self.name, str) and self.name and self.name == printable(self.name)
        require("Stack config", named, "name must be one line of text", self.name)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """The upper adapter's variables, and those of the lower one, with `below/` before them."""
        below = {
            f"{BELOW}/{name}": dataclasses.replace(spec, group=BELOW)
            for name, spec in self.below.specs(sizes).items()
        }
        return self.above.specs(sizes) | below

    def borrowed_values(self, members: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        (weights,) = members
        own = {name: value for name, value in weights.items() if name.startswith("adapters/")}
        return {f"{BELOW}/{name}": value for name, value in own.items()}

    @property
    def member_names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def trained_part(self) -> ModuleConfig:
        return self.above

    @property
    def learning_rate(self) -> float | None:
        return self.above.learning_rate

    @property
    def changes_embeddings(self) -> bool:
        return self.below.changes_embeddings

    @property
    def changed_sublayers(self) -> tuple[str, ...]:
        changed = {*self.below.changed_sublayers, *self.above.changed_sublayers}
        return tuple(name for name in PROJECTIONS if name in changed)

    def adjusted(self, **values: Any) -> StackConfig:
        return dataclasses.replace(self, above=self.above.adjusted(**values))

    def adjusted_like(self, other: ModuleConfig, names: Collection[str]) -> StackConfig:
        above = other.above if isinstance(other, StackConfig) else other
        return dataclasses.replace(self, above=self.above.adjusted_like(above, names))

    def without_lowest(self, count: int, num_layers: int) -> StackConfig:
        return dataclasses.replace(self, above=self.above.without_lowest(count, num_layers))

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        """Those of the upper adapter, below its number; the lower one is not trained."""
        rates = self.above.dropout_rates(sizes)
        return {f"1/{name}": rate for name, rate in rates.items()}

    def sizes(self, num_layers: int) -> tuple[int, ...]:
        return self.above.sizes(num_layers)

    def stored_config(self) -> StackConfig:
        return dataclasses.replace(self, above=self.above.stored_config())

    def stored_values(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        below = {name: value for name, value in values.items() if name.startswith(f"{BELOW}/")}
        own = {name: value for name, value in values.items() if name not in below}
        return self.above.stored_values(own) | below

    @property
    def factors(self) -> tuple[str, ...]:
        return self.above.factors

    def weighted_sum(
        self, values: Sequence[Mapping[str, np.ndarray]], shares: Sequence[float]
    ) -> tuple[StackConfig, dict[str, np.ndarray]] | None:
        summed = self.above.weighted_sum(values, shares)
        return summed and (dataclasses.replace(self, above=summed[0]), summed[1])

    def summary(self) -> str:
        return f"{self.above.summary()}; on {self.name}: {self.below.summary()}"


@module_for(StackConfig)
class StackModule(UnionModule):
    """The module of the lower adapter, and that of the upper one after it."""

    def __init__(
        self,
        config: StackConfig,
        values: Mapping[str, Tensor] | None = None,
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
    ) -> None:
        values, dropouts = values or {}, dropouts or {}
        below = config.below.module(values_with_prefix(values, BELOW), {}, stacked)
        above = config.above.module(values, values_with_prefix(dropouts, "1"), stacked)
        super().__init__(config, values, dropouts, stacked, [below, above])
