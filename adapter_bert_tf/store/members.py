"""Members of a fusion: compatible adapters and their stacked weights."""

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
from adapter_bert_tf.store.card import card_page
from adapter_bert_tf.store.file_names import CARD, CONFIG, MEMBERS, WEIGHTS

NORM = "/LayerNorm/"
# Keys that all members must agree on, with a description for messages.
COMPARED_KEYS = {"adapter": "adapters of another shape", "base": "another base"}


@dataclasses.dataclass(frozen=True)
class Member:
    """An adapter that a fusion has a copy of.

    Args:
      name: name in the fusion.
      config: config of its adapter directory, with its digests.
      content: bytes of its weights file.
      weights: dict from common name to float array.
    """

    name: str
    config: dict[str, Any]
    content: bytes = dataclasses.field(repr=False)
    weights: dict[str, np.ndarray] = dataclasses.field(repr=False)

    @classmethod
    def from_values(
        cls,
        name: str,
        config: Mapping[str, Any],
        values: Mapping[str, Any],
        dtype: str = "float32",
    ) -> "Member":
        """Makes a member from weights, serialized as `dtype`."""
        arrays = {key: np.asarray(value) for key, value in values.items()}
        content = weights.pack(arrays, dtype)
        return cls(name, schema.seal(config, weights.digest(content)), content, arrays)

    @property
    def folder(self) -> str:
        """Its path in the fusion's directory, named by its digest."""
        return f"{MEMBERS}/{self.config['sha256'][:16]}"

    def files(self, folder: str | None = None) -> dict[str, bytes]:
        """Returns a dict from the relative path of each of its files to the bytes.

        Args:
          folder: folder of the files; None for its folder in a fusion's directory.
        """
        directory = folder or self.folder
        return {
            f"{directory}/{CONFIG}": json.dumps(self.config, indent=2).encode(),
            f"{directory}/{WEIGHTS}": self.content,
            f"{directory}/{CARD}": card_page(self.config).encode(),
        }


def make_fusion_config(members: Sequence[Member], cooling_steps: int = 0) -> FusionConfig:
    """Makes the configuration of a fusion of members.

    Raises:
      InputError: when members are not bottleneck adapters, or have different shapes, bases or
        LayerNorms.
    """
    if not members:
        raise InputError("A fusion needs at least one member. Received: none")
    names = [member.name for member in members]
    if len(set(names)) < len(names):
        raise InputError(
            f"Members must have different names. Received: {preview(names)}. Give them names: a "
            "dict from names to members (fuse=NAME=FOLDER,...).",
            "fuse=NAME=FOLDER,...",
        )
    first, *others = members
    for member in members:
        _check_kind(member)
    for other in others:
        _check_compatible(first, other)
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
            f"{tuning.method!r}), which a fusion needs. Train it with tuning='adapters'.",
            f"tuning={tuning.method!r}",
            "tuning='adapters'",
        )
    if adapter.placement != "serial":
        raise InputError(f"The member {preview(member.name)} is a parallel adapter: {WHY_SERIAL}.")


def _check_all_norms(member: Member) -> None:
    frozen = contents.tuning_of(member.config).frozen_layers
    if frozen:
        raise InputError(
            f"The member {preview(member.name)} has LayerNorms of its upper layers only, because "
            f"the lowest {frozen} are frozen. A fusion has LayerNorms of all layers or of none. "
            "Train members with train_layer_norm=False, or with frozen_layers=0.",
            "train_layer_norm=False",
            "frozen_layers=0",
        )


def _check_compatible(first: Member, other: Member) -> None:
    pair = f"{preview(first.name)} and {preview(other.name)}"
    for key, description in COMPARED_KEYS.items():
        values = [_compared_values(key, member) for member in (first, other)]
        differences = [n for n in values[0] | values[1] if values[0].get(n) != values[1].get(n)]
        if differences:
            values_text = "; ".join(
                f"{name}: {preview(values[0].get(name))} and {preview(values[1].get(name))}"
                for name in differences
            )
            raise InputError(
                f"The members {pair} do not fit each other: {description}. {values_text}. Train "
                "both with the same settings."
            )
    norms = [{n: w for n, w in member.weights.items() if NORM in n} for member in (first, other)]
    same = norms[0].keys() == norms[1].keys()
    if not same or any(not np.array_equal(norms[0][n], norms[1][n]) for n in norms[0]):
        owners = [
            preview(m.name)
            for m, norm_weights in zip((first, other), norms, strict=True)
            if norm_weights
        ]
        raise InputError(
            f"The members {pair} have different LayerNorms, and a fusion has one set for all its "
            f"members. Members with their own: {' and '.join(owners)}. Train members with "
            "train_layer_norm=False, or with the same LayerNorms.",
            "train_layer_norm=False",
        )


def _compared_values(key: str, member: Member) -> dict[str, Any]:
    """Returns the values to compare; settings of training only, such as dropout, do not count."""
    if key == "base":
        return {k: v for k, v in member.config["base"].items() if k != "layer_norms_sha256"}
    adapter = contents.adapter_of(member.config)
    assert isinstance(adapter, AdapterConfig)
    training_only = ("init_scale", "identity_init", "dropout")
    return {n: v for n, v in adapter.to_dict().items() if n not in training_only}


def stack_members(config: FusionConfig, members: Sequence[Member]) -> dict[str, np.ndarray]:
    """Stacks the members' weights to `[members, ...]`, with their common LayerNorms if any."""
    names = [name for name in members[0].weights if name.startswith("adapters/")]
    arrays = {
        name.replace("adapters/", "members/", 1): np.stack([m.weights[name] for m in members])
        for name in names
    }
    if config.own_norms:
        arrays |= {n: value for n, value in members[0].weights.items() if NORM in n}
    return arrays


def update_members(members: Sequence[Member], values: Mapping[str, Any]) -> tuple[Member, ...]:
    """Returns the members with the weights that a fusion has trained.

    Args:
      members: the initial members.
      values: dict from common name to `[members, ...]`, with the names of `stack_members`.
    """
    return tuple(_update_member(m, i, values) for i, m in enumerate(members))


def _update_member(member: Member, index: int, values: Mapping[str, Any]) -> Member:
    updated = member_weights(member, index, values)
    if all(np.array_equal(value, member.weights[name]) for name, value in updated.items()):
        return member
    return Member.from_values(member.name, member.config | {"metric": None}, updated)


def member_weights(member: Member, index: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a member's weights, with the adapters from index `index` of a fusion's values."""
    adapter_weights = {
        name: values[name.replace("adapters/", "members/", 1)][index]
        for name in member.weights
        if name.startswith("adapters/")
    }
    return {**member.weights, **adapter_weights}
