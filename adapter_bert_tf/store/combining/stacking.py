"""Adapters on top of others: what may be below, and which one is."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.languages.stack import BELOW, StackConfig
from adapter_bert_tf.adapters.methods.fusion_config import NORM
from adapter_bert_tf.adapters.registry import ModuleConfig, of_kind
from adapter_bert_tf.adapters.variable_specs import Sizes
from adapter_bert_tf.errors import Conflict, InputError, Mismatch, Missing, Unsupported
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.members import Member, load_member, member_values
from adapter_bert_tf.training.tuning import Tuning


def load_below(folder: str, base: Any = None) -> Member:
    """Reads an adapter directory to put it below others.

    Args:
      folder: of the adapter, or of the run that trained it.
      base: fingerprint of the base that it must have been trained on; None: any.

    Raises:
      InputError: when it is missing, damaged, of another base, or cannot be below another.
    """
    member = load_member(folder)
    label = f"The adapter {preview(member.name)} in {folder!r}"
    adapter = contents.adapter_of(member.config)
    if adapter is None or not adapter.stackable or member.config["method"] != "adapters":
        raise Mismatch(
            f"{label} cannot be below another: it was trained with tuning="
            f"{member.config['method']!r}. Train it with tuning='adapters'.",
            "tuning='adapters'",
        )
    if any(NORM in name for name in member.weights):
        raise Mismatch(
            f"{label} has LayerNorms of its own, which an adapter on top of it would replace. "
            "Train it with train_layer_norm=False.",
            "train_layer_norm=False",
        )
    if base is not None:
        check_base(member.config, base)
    return dataclasses.replace(member, is_copied=False)


def below_of(stack: str | os.PathLike[str] | None, base: Any = None) -> tuple[Member, ...]:
    """The adapter in a folder, as `load_below`; an empty tuple for None."""
    return () if stack is None else (load_below(storage.path_of(stack), base),)


def stack_folders(
    configs: Mapping[str, Mapping[str, Any]],
    stack: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | None,
) -> dict[str, Any]:
    """The folder below each of several adapters, None where there is none.

    Args:
      configs: dict from an adapter's name to its config.
      stack: one folder, for all that were trained on top of another, or a dict from their names.

    Raises:
      InputError: if the dict has other names.
    """
    if isinstance(stack, Mapping):
        if unknown := [name for name in stack if name not in configs]:
            raise InputError(
                f"stack names {preview(unknown)}, and the adapters are {preview(list(configs))}. "
                "Give a dict from their names to folders.",
                "stack",
            )
        return {name: stack.get(name) for name in configs}
    adapters = {name: contents.adapter_of(config) for name, config in configs.items()}
    stacked = {name for name, adapter in adapters.items() if of_kind(adapter, StackConfig)}
    # Where nothing is a stack, `with_below` refuses the folder.
    return {name: stack if name in (stacked or configs) else None for name in configs}


def on_top(above: ModuleConfig, member: Member) -> StackConfig:
    """The configuration of an adapter on top of a member. Raises `InputError`."""
    below = contents.adapter_of(member.config)
    if below is None:
        raise InputError(f"{preview(member.name)} has no adapter to put below another.")
    return StackConfig(below, above, member.name)


def check_frozen(adapter: StackConfig, tuning: Tuning, sizes: Sizes) -> None:
    """Raises `Conflict` if the lower adapter of a stack changes what is frozen."""
    below = (spec for spec in adapter.specs(sizes).values() if spec.group == BELOW)
    if layers := {spec.layer or 0 for spec in below if tuning.freezes(spec)}:
        frozen = f"frozen_layers={tuning.frozen_layers}"
        raise Conflict(
            f"The adapter below, {preview(adapter.name)}, changes layers that {frozen} freezes: "
            f"{sorted(layers)}. Put one below that was trained without an invertible part, with "
            f"adapter_layers of {tuning.frozen_layers} and more, or train without {frozen}.",
            frozen,
            "adapter_layers",
        )


def require_no_stack(config: Mapping[str, Any], format: str) -> None:
    """Raises `Unsupported` for an adapter that was trained on top of another."""
    if stack := of_kind(contents.adapter_of(config), StackConfig):
        raise Unsupported(
            f"{format}: {preview(contents.name_of(config))} is a stack: it was trained on top of "
            f"the adapter {preview(stack.name)}, and its directory does not hold that. Export a "
            "SavedModel, which holds both, or to AdapterHub, which stacks two adapters."
        )


def with_below(saved: SavedAdapter, member: Member | None, where: str) -> SavedAdapter:
    """A saved adapter with the one below it, which may be another than in its training.

    Args:
      saved: any adapter; without a stack it is returned as it is.
      member: result of `load_below`, or None.
      where: names the saved adapter in messages.

    Raises:
      InputError: if one is missing, or there is one too many.
    """
    stack = of_kind(contents.adapter_of(saved.config), StackConfig)
    if stack is None:
        if member:
            raise Mismatch(
                f"{where} was trained on no other adapter. Leave out stack={preview(member.name)}.",
                "stack",
            )
        return saved
    if member is None:
        digest = saved.config["members"][0][:16]
        raise Missing(
            f"{where} was trained on top of the adapter {preview(stack.name)} (sha256 {digest}...)."
            " Give the folder of that adapter, or of another language's: stack=FOLDER.",
            "stack=FOLDER",
        )
    check_base(member.config, saved.config["base"])
    adapter = on_top(stack.above, member)
    check_frozen(adapter, contents.tuning_of(saved.config), saved.config["base"])
    config = saved.config | {"adapter": adapter.to_dict(), "members": [member.config["sha256"]]}
    return SavedAdapter(config, saved.weights | member_values(adapter, [member]), (member,))
