"""Configuration of AdapterFusion: its members, and the attention over them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.registry import ModuleConfig, register, require
from adapter_bert_tf.adapters.variable_specs import (
    ATTENTION_DROPOUT,
    Sizes,
    VariableSpec,
    dense_specs,
)
from adapter_bert_tf.sanitize import printable

MOST_MEMBERS = 1_000
NORM = "/LayerNorm/"
WHY_SERIAL = (
    "a parallel adapter reads the input of the sublayer, so the attention has no output of the "
    "sublayer as its query, and the published fusion counts the skip connection twice there. Train "
    "it with houlsby or pfeiffer"
)
TO_IDENTITY = 0.01  # Weight of the value kernels' distance to the identity in the loss.


_require = functools.partial(require, "Fusion config")


@register("fusion")
@dataclasses.dataclass(frozen=True)
class FusionConfig(ModuleConfig):
    """AdapterFusion (Pfeiffer et al. 2021, section 3.2): an attention over frozen members.

    After each sublayer where the members have an adapter there are a query and a key kernel,
    `[hidden, hidden]` with biases, and a value kernel without one. The value kernel starts near the
    identity, and the loss keeps it near.

    Args:
      member: `AdapterConfig` that all members have, or one as a dict.
      members: their names, in the order of their weights.
      cooling_steps: training steps in which the temperature of the attention falls from 50 to 1
        (AdapterHub: 1,000); 0: it always is 1.
      own_norms: whether the members have LayerNorms of their own, the same for all.
    """

    groups: ClassVar[tuple[str, ...]] = ("fusion", "members")
    borrowed_groups: ClassVar[tuple[str, ...]] = ("members",)

    member: AdapterConfig
    members: tuple[str, ...]
    cooling_steps: int = 0
    own_norms: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.member, Mapping):
            object.__setattr__(self, "member", AdapterConfig.from_dict(self.member))
        _require(isinstance(self.member, AdapterConfig), "member must be an AdapterConfig", self)
        if isinstance(self.members, list):
            object.__setattr__(self, "members", tuple(self.members))
        names = self.members
        known = isinstance(names, tuple) and 0 < len(names) <= MOST_MEMBERS
        known = known and all(isinstance(n, str) and n and n == printable(n) for n in names)
        message = f"members must be different names, each one line of text, 1 to {MOST_MEMBERS:,}"
        _require(known and len(set(names)) == len(names), message, names)
        steps = self.cooling_steps
        whole = isinstance(steps, int) and not isinstance(steps, bool) and 0 <= steps < 2**31
        _require(whole, "cooling_steps must be a whole number of 0 or more", steps)
        own_norms, placement = self.own_norms, self.member.placement
        _require(isinstance(own_norms, bool), "own_norms must be true or false", own_norms)
        _require(placement == "serial", f"members must be serial: {WHY_SERIAL}", placement)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """The fusion's own variables, then the members', each `[members, ...]`."""
        members = {
            stacked_name(name): VariableSpec(
                (len(self.members), *spec.shape), "members", spec.layer, spec.start
            )
            for name, spec in self.member.specs(sizes).items()
        }
        layers = {name.rpartition("/")[0]: spec.layer for name, spec in members.items()}
        own = {
            f"{prefix.replace('members/', 'fusion/', 1)}/{name}": spec
            for prefix, layer in layers.items()
            for name, spec in _attention(sizes["hidden_size"], layer).items()
        }
        return own | members

    def new_dropouts(self, sizes: Sizes) -> dict[str, Callable[..., Any]]:
        """One for each attention, with the rate of the base."""
        specs = self.specs(sizes).items()
        prefixes = {name.rpartition("/")[0] for name, spec in specs if spec.group == "fusion"}
        rate = sizes.get("attention_dropout", ATTENTION_DROPOUT)
        from adapter_bert_tf.adapters.methods.score_dropout import ScoreDropout

        return {prefix: ScoreDropout(rate, self.cooling_steps) for prefix in sorted(prefixes)}

    def borrowed_values(self, members: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """The members' weights as `[members, ...]`, with their common LayerNorms if any."""
        names = [name for name in members[0] if name.startswith("adapters/")]
        values = {stacked_name(name): np.stack([w[name] for w in members]) for name in names}
        if self.own_norms:
            values |= {name: value for name, value in members[0].items() if NORM in name}
        return values

    @property
    def member_names(self) -> tuple[str, ...]:
        return self.members

    @property
    def replaced_groups(self) -> tuple[str, ...]:
        return ("LayerNorm",) if self.own_norms else ()

    def summary(self) -> str:
        names = printable(", ".join(self.members))
        return f"fusion of {len(self.members)} ({names}), each {self.member.summary()}"


def stacked_name(name: str) -> str:
    """Common name of the members' values of a variable, in a fusion."""
    return name.replace("adapters/", "members/", 1)


def _attention(hidden: int, layer: int | None) -> dict[str, VariableSpec]:
    size, start = (hidden,), {"start": 0.02, "cut": False}
    value = VariableSpec(
        (hidden, hidden), "fusion", layer, "near_identity", to_identity=TO_IDENTITY
    )
    return {
        **dense_specs("query_", size, size, "fusion", layer, **start),
        **dense_specs("key_", size, size, "fusion", layer, **start),
        "value_kernel": value,
    }
