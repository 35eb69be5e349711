"""The members of a fusion: adapters that fit each other, and their weights side by side."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.fusion_config import WHY_SERIAL, FusionConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents, schema, weights
from adapter_bert_tf.store.card import page
from adapter_bert_tf.store.place import CARD, CONFIG, MEMBERS, WEIGHTS

NORM = "/LayerNorm/"
# What has to be the same of all members, besides their LayerNorms, and what a message calls it.
ALIKE = {"adapter": "adapters of another shape", "base": "another base"}


@dataclasses.dataclass(frozen=True)
class Member:
    """An adapter of which a fusion keeps a copy.

    Args:
      name: in the fusion.
      config: of its adapter directory, with its digests.
      content: bytes of its weights' file.
      weights: dict from common name to float array.
    """

    name: str
    config: dict[str, Any]
    content: bytes = dataclasses.field(repr=False)
    weights: dict[str, np.ndarray] = dataclasses.field(repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        config: Mapping[str, Any],
        values: Mapping[str, Any],
        dtype: str = "float32",
    ) -> "Member":
        """A member with weights that are in no file yet; stored as `dtype`."""
        arrays = {key: np.asarray(value) for key, value in values.items()}
        content = weights.pack(arrays, dtype)
        return cls(name, schema.seal(config, weights.digest(content)), content, arrays)

    @property
    def folder(self) -> str:
        """Its place in the fusion's directory, by its digest."""
        return f"{MEMBERS}/{self.config['sha256'][:16]}"

    def files(self, folder: str | None = None) -> dict[str, bytes]:
        """Dict from the path of each of its files in another's directory to the bytes.

        Args:
          folder: where in that directory; None for a fusion's own place for it.
        """
        place = folder or self.folder
        return {
            f"{place}/{CONFIG}": json.dumps(self.config, indent=2).encode(),
            f"{place}/{WEIGHTS}": self.content,
            f"{place}/{CARD}": page(self.config).encode(),
        }


def fusion_of(members: Sequence[Member], cooling_steps: int = 0) -> FusionConfig:
    """The configuration of a fusion of members.

    Raises:
      InputError: when they cannot be fused: they are no bottleneck adapters, or of different
        shapes or bases, or each brings LayerNorms of its own.
    """
    if not members:
        raise InputError("A fusion needs at least one member. Received: none")
    names = [member.name for member in members]
    if len(set(names)) < len(names):
        raise InputError(
            f"Members need different names. Received: {preview(names)}. Give one another: a dict "
            "from names to members (fuse=NAME=FOLDER,...).",
            "fuse=NAME=FOLDER,...",
        )
    first, *others = members
    for member in members:
        _check_kind(member)
    for other in others:
        _check_alike(first, other)
    own_norms = any(NORM in name for name in first.weights)
    if own_norms:
        _check_all_norms(first)
    adapter = contents.adapter_of(first.config)
    assert isinstance(adapter, AdapterConfig)
    return FusionConfig(adapter, tuple(names), cooling_steps, own_norms)


def _check_kind(member: Member) -> None:
    tuning, adapter = contents.tuning_of(member.config), contents.adapter_of(member.config)
    if tuning.method != "adapters" or not isinstance(adapter, AdapterConfig):
        raise InputError(
            f"The member {preview(member.name)} has no bottleneck adapters (tuning="
            f"{tuning.method!r}). A fusion listens to nothing else: train it with "
            "tuning='adapters'.",
            f"tuning={tuning.method!r}",
            "tuning='adapters'",
        )
    if adapter.placement != "serial":
        raise InputError(f"The member {preview(member.name)} is a parallel adapter: {WHY_SERIAL}.")


def _check_all_norms(member: Member) -> None:
    frozen = contents.tuning_of(member.config).frozen_layers
    if frozen:
        raise InputError(
            f"The member {preview(member.name)} brings LayerNorms of its upper layers, the lowest "
            f"{frozen} being frozen, and a fusion has LayerNorms of all layers or none. Train "
            "members with train_layer_norm=False, or with frozen_layers=0.",
            "train_layer_norm=False",
            "frozen_layers=0",
        )


def _check_alike(first: Member, other: Member) -> None:
    pair = f"{preview(first.name)} and {preview(other.name)}"
    for key, what in ALIKE.items():
        values = [_comparable(key, member) for member in (first, other)]
        different = [n for n in values[0] | values[1] if values[0].get(n) != values[1].get(n)]
        if different:
            said = "; ".join(
                f"{name}: {preview(values[0].get(name))} and {preview(values[1].get(name))}"
                for name in different
            )
            raise InputError(
                f"The members {pair} do not fit each other: {what}. {said}. Train both with the "
                "same."
            )
    norms = [{n: w for n, w in member.weights.items() if NORM in n} for member in (first, other)]
    same = norms[0].keys() == norms[1].keys()
    if not same or any(not np.array_equal(norms[0][n], norms[1][n]) for n in norms[0]):
        own = [preview(m.name) for m, theirs in zip((first, other), norms, strict=True) if theirs]
        raise InputError(
            f"The members {pair} have different LayerNorms, and a fusion has one set for all its "
            f"members: {' and '.join(own)} brought some of {'their' if own[1:] else 'its'} own. "
            "Train members with train_layer_norm=False. (Those that all have the same LayerNorms "
            "can be fused as they are.)",
            "train_layer_norm=False",
        )


def _comparable(key: str, member: Member) -> dict[str, Any]:
    """What of a config counts: a start and a dropout are of training, and not of the result."""
    if key == "base":
        return {k: v for k, v in member.config["base"].items() if k != "layer_norms_sha256"}
    adapter = contents.adapter_of(member.config)
    assert isinstance(adapter, AdapterConfig)
    of_training = ("init_scale", "identity_init", "dropout")
    return {n: v for n, v in adapter.to_dict().items() if n not in of_training}


def stacked(config: FusionConfig, members: Sequence[Member]) -> dict[str, np.ndarray]:
    """What a fusion borrows: the members' weights `[members, ...]`, and LayerNorms of theirs."""
    names = [name for name in members[0].weights if name.startswith("adapters/")]
    found = {
        name.replace("adapters/", "members/", 1): np.stack([m.weights[name] for m in members])
        for name in names
    }
    if config.own_norms:
        found |= {n: value for n, value in members[0].weights.items() if NORM in n}
    return found


def trained_further(members: Sequence[Member], values: Mapping[str, Any]) -> tuple[Member, ...]:
    """The members with the weights `[members, ...]` that a fusion has trained; same if it has not.

    Args:
      members: as they began.
      values: dict from common name to what `stacked` names.
    """
    return tuple(_with_values(m, i, values) for i, m in enumerate(members))


def _with_values(member: Member, place: int, values: Mapping[str, Any]) -> Member:
    new = weights_in(member, place, values)
    if all(np.array_equal(value, member.weights[name]) for name, value in new.items()):
        return member
    return Member.of(member.name, member.config | {"metric": None}, new)


def weights_in(member: Member, place: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """A member's weights, its adapters as they stand in a fusion at a place."""
    new = {
        name: values[name.replace("adapters/", "members/", 1)][place]
        for name in member.weights
        if name.startswith("adapters/")
    }
    return {**member.weights, **new}
