"""Members of a fusion or a stack: their files, their compatibility and their weights."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.methods.fusion_config import (
    NORM,
    WHY_SERIAL,
    FusionConfig,
    stacked_name,
)
from adapter_bert_tf.adapters.registry import ModuleConfig, of_kind
from adapter_bert_tf.errors import Conflict, Damaged, InputError, Mismatch, Unsupported
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents, schema, weights
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.checks import NORMS
from adapter_bert_tf.store.derivation import retrained
from adapter_bert_tf.store.file_names import CONFIG, MEMBERS
from adapter_bert_tf.store.files import (
    adapter_files,
    find_adapter,
    missing_adapter,
    read_adapter,
)
from adapter_bert_tf.store.multitask import require_one_task

TRAINING_ONLY = ("init_scale", "identity_init", "dropout")  # Members may differ in these.


@dataclasses.dataclass(frozen=True)
class Member:
    """An adapter that a fusion has a copy of, or that is below another."""

    name: str  # In the fusion.
    config: dict[str, Any]  # Of its adapter directory, with its digests.
    content: bytes = dataclasses.field(repr=False)  # Of its weights file.
    weights: dict[str, np.ndarray] = dataclasses.field(repr=False)  # By common name.
    is_copied: bool = True  # Whether a directory holds a copy, or only the digest.

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

    def files(self, folder: str | None = None) -> dict[str, bytes]:
        """Dict from the paths of its files to bytes, in a folder or in a fusion's directory."""
        parent = folder or f"{MEMBERS}/{self.config['sha256'][:16]}"
        files = adapter_files(self.config, self.content)
        return {f"{parent}/{name}": content for name, content in files.items()}


def load_member(folder: str, name: str | None = None) -> Member:
    """Reads an adapter, or that of a run, as a `Member`, by default of its own name.

    Raises `InputError`.
    """
    found = find_adapter(folder)
    if found is None:
        raise missing_adapter(folder)
    config, weights, content = read_adapter(found)
    require_one_task(config, folder)
    adapter = contents.adapter_of(config)
    if adapter and adapter.borrowed_groups:
        raise Conflict(
            f"{folder!r} is a {adapter.kind}, which is made of several adapters and cannot "
            "be part of another. Name the folder of a single adapter."
        )
    return Member(name or contents.name_of(config), config, content, weights)


def read_members(folder: str, config: Mapping[str, Any]) -> tuple[Member, ...]:
    """Reads the members of a fusion; an empty tuple for other adapters. Raises `InputError`."""
    fusion = of_kind(contents.adapter_of(config), FusionConfig)
    if fusion is None:
        return ()
    parent, digests = os.path.join(folder, MEMBERS), config["members"]
    _check_member_folders(parent, digests)
    members = tuple(
        _read_member(os.path.join(parent, digest[:16]), name, digest)
        for name, digest in zip(fusion.members, digests, strict=True)
    )
    members_config = make_fusion_config(members, fusion.cooling_steps)
    if members_config != fusion:
        raise Damaged(
            f"The members in {parent!r} do not match {CONFIG}: {preview(members_config)} in the "
            f"folder, {preview(fusion)} in {CONFIG}."
        )
    check_base(members[0].config, config["base"])
    return members


def _read_member(folder: str, name: str, digest: str) -> Member:
    try:
        member = load_member(folder, name)
    except InputError as error:
        raise Damaged(
            f"The member {preview(name)} of a fusion is missing or damaged. Put a copy of it in "
            f"{folder!r}. {error}"
        ) from error
    if member.config["sha256"] != digest:
        raise Damaged(
            f"The member {preview(name)} of a fusion, in {folder!r}, has another digest than the "
            "one the fusion was trained with. Put a copy of the original member there."
        )
    return member


def _check_member_folders(parent: str, digests: Sequence[str]) -> None:
    is_folder = not storage.is_link(parent) and storage.isdir(parent)  # A link may lead to itself.
    names = [name.rstrip("/") for name in storage.listdir(parent)] if is_folder else []
    paths = [parent, *(os.path.join(parent, name) for name in names)]
    if links := [path for path in paths if storage.is_link(path)]:
        raise Damaged(
            f"{preview(links[0])} is a link, and no file outside the fusion's directory is read. "
            "Replace it by a copy of its target."
        )
    if foreign := sorted(set(names) - {digest[:16] for digest in digests}):
        raise Damaged(
            f"{parent!r} has {preview(foreign)}, which is not a member of the fusion. Move it away."
        )


def make_fusion_config(members: Sequence[Member], cooling_steps: int = 0) -> FusionConfig:
    """Makes a configuration from compatible bottleneck adapters. Raises `InputError` for others."""
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
    adapters = [_bottleneck_config(member) for member in members]
    for other in others:
        _check_compatible(first, other)
    own_norms = any(NORM in name for name in first.weights)
    frozen = contents.tuning_of(first.config).frozen_layers
    if own_norms and frozen:
        raise Mismatch(
            f"The member {preview(first.name)} has LayerNorms of its upper layers only, because "
            f"the lowest {frozen} are frozen. A fusion has LayerNorms of all layers or of none. "
            "Train members with train_layer_norm=False, or with frozen_layers=0.",
            "train_layer_norm=False",
            "frozen_layers=0",
        )
    return FusionConfig(adapters[0], tuple(names), cooling_steps, own_norms)


def _bottleneck_config(member: Member) -> AdapterConfig:
    """The configuration of a member. Raises `InputError` unless a fusion can use it."""
    tuning, found = contents.tuning_of(member.config), contents.adapter_of(member.config)
    if tuning.method != "adapters" or found is None:
        raise Mismatch(
            f"The member {preview(member.name)} has no bottleneck adapters (tuning="
            f"{tuning.method!r}), which a fusion needs. Train it with tuning='adapters'.",
            f"tuning={tuning.method!r}",
            "tuning='adapters'",
        )
    adapter = of_kind(found, AdapterConfig)
    if adapter is None:
        raise Mismatch(
            f"A fusion has bottleneck adapters as members, and {preview(member.name)} is: "
            f"{found.summary()}. Train it with adapter='pfeiffer' or adapter='houlsby'.",
            "adapter='pfeiffer'",
            "adapter='houlsby'",
        )
    if adapter.placement != "serial":
        raise Unsupported(f"The member {preview(member.name)} is a parallel adapter: {WHY_SERIAL}.")
    return adapter


def _check_compatible(first: Member, other: Member) -> None:
    pair = f"{preview(first.name)} and {preview(other.name)}"
    adapters = [_bottleneck_config(member).to_dict() for member in (first, other)]
    bases = [member.config["base"] for member in (first, other)]
    for description, (a, b), ignored in (
        ("adapters of another shape", adapters, TRAINING_ONLY),
        ("another base", bases, (NORMS,)),
    ):
        names = [name for name in a | b if a.get(name) != b.get(name) and name not in ignored]
        if names:
            values = [
                f"{name}: {preview(a.get(name))} and {preview(b.get(name))}" for name in names
            ]
            raise Mismatch(
                f"The members {pair} do not fit each other: {description}. {'; '.join(values)}. "
                "Train both with the same settings."
            )
    norms = [{n: w for n, w in member.weights.items() if NORM in n} for member in (first, other)]
    same = norms[0].keys() == norms[1].keys()
    if not same or any(not np.array_equal(norms[0][n], norms[1][n]) for n in norms[0]):
        owners = [preview(m.name) for m, own in zip((first, other), norms, strict=True) if own]
        raise Mismatch(
            f"The members {pair} have different LayerNorms, and a fusion has one set for all its "
            f"members. Members with their own: {' and '.join(owners)}. Train members with "
            "train_layer_norm=False, or with the same LayerNorms.",
            "train_layer_norm=False",
        )


def member_values(config: ModuleConfig, members: Sequence[Member]) -> dict[str, np.ndarray]:
    """The values that a configuration borrows from its members, by common name."""
    return config.borrowed_values([member.weights for member in members])


def update_members(members: Sequence[Member], values: Mapping[str, Any]) -> tuple[Member, ...]:
    """The members with the weights of a trained fusion, dict from the names of `member_values`."""
    updated = []
    for index, member in enumerate(members):
        if not member.is_copied:
            updated.append(member)
            continue
        weights = member_weights(member, index, values)
        if any(not np.array_equal(value, member.weights[n]) for n, value in weights.items()):
            member = Member.from_values(member.name, retrained(member.config), weights)
        updated.append(member)
    return tuple(updated)


def member_weights(member: Member, index: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """A member's weights, with the adapters from index `index` of a fusion's values."""
    return {
        name: values[stacked_name(name)][index] if name.startswith("adapters/") else value
        for name, value in member.weights.items()
    }
