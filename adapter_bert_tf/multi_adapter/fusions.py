"""Fusions of an `AdapterModel`: from members, live or saved, to a task that listens to them."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.methods.mixed import MixedModule
from adapter_bert_tf.adapters.modules import module_from_values
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import head_of
from adapter_bert_tf.heads.classifier import pooled_logits
from adapter_bert_tf.multi_adapter.live_task import LiveTask
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.fusion_files import load_member
from adapter_bert_tf.store.members import Member, weights_in


def members_of(
    given: Any, find: Callable[[str], LiveTask], known: Iterable[str], base: Mapping[str, Any]
) -> tuple[Member, ...]:
    """The members of a new fusion.

    Args:
      given: names of tasks and paths of adapter directories, or a dict from a name in the fusion to
        one of these.
      find: function from the name of a task to the task.
      known: names of the tasks.
      base: fingerprint of the base.

    Raises:
      InputError: when one is neither, damaged, a fusion itself, or of another base.
    """
    if isinstance(given, str | os.PathLike) or not isinstance(given, Iterable):
        raise InputError(
            "members is a list of adapters' names or folders, or a dict from a name to one. "
            f"Received: {preview(given)}"
        )
    pairs = given.items() if isinstance(given, Mapping) else ((None, place) for place in given)
    return tuple(_member(name, place, find, set(known), base) for name, place in pairs)


def _member(
    name: Any, place: Any, find: Callable[[str], LiveTask], known: set[str], base: Mapping[str, Any]
) -> Member:
    if not isinstance(place, str | os.PathLike) or not isinstance(name, str | None) or name == "":
        raise InputError(
            "A member is an adapter's name or folder, with a name of its own or none. Received: "
            f"{preview(place if name is None else {name: place})}"
        )
    if place not in known:
        member = load_member(os.fspath(place), name)
        try:
            check_base(member.config, base)
        except InputError as error:
            where = f"{preview(member.name)} in {preview(os.fspath(place))}"
            raise InputError(f"The member {where}: {error}", *error.arguments) from error
        return member
    task = find(os.fspath(place))
    if task.members:
        raise InputError(
            f"{place!r} is a fusion itself, and no member of another. Name its members instead."
        )
    config = {key: value for key, value in task.described().items() if key != "run"}
    return Member.of(name or contents.name_of(config), config, task.values)


Together = dict[str, tuple[Mapping[str, Any], Mapping[str, tf.Tensor]]]


def together(name: str, task: LiveTask) -> Together:
    """Dict from name to (config, values) of a fusion and its members. Raises `InputError`."""
    if not task.members:
        raise InputError(f"{preview(name)} is no fusion and has no members.")
    if name in (names := [member.name for member in task.members]):
        raise InputError(
            f"The fusion has the name of one of its members: {preview(names)}. Save it, and load "
            "it under another: load_adapter(folder, name=...)."
        )
    found: Together = {name: (task.config, _tensors(task.values))}
    return found | {
        member.name: (member.config, _tensors(weights_in(member, i, task.values)))
        for i, member in enumerate(task.members)
    }


def _tensors(values: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    return {name: tf.convert_to_tensor(value) for name, value in values.items()}


def logits_together(
    encoder: Any,
    configs: Sequence[Mapping[str, Any]],
    inputs: Mapping[str, tf.Tensor],
    values: Sequence[Mapping[str, tf.Tensor]],
) -> list[tf.Tensor]:
    """Logits of several adapters on the same inputs, in one pass of the base.

    Args:
      encoder: `AdapterBertEncoder`.
      configs: of the adapters.
      inputs: dict of int32 `[batch, seq]`.
      values: for each, dict from common name to tensor.
    """
    heads = [head_of(config) for config in configs]
    parts = [
        module_from_values(contents.adapter_of(config), weights)
        for config, weights in zip(configs, values, strict=True)
    ]
    rows = {name: tf.tile(value, [len(parts), 1]) for name, value in inputs.items()}
    first_only = all(head.logits is pooled_logits for head in heads)
    found = encoder(rows, output_range=1 if first_only else None, parts=MixedModule(parts))
    shares = [
        dict(zip(found, share, strict=True))
        for share in zip(*(tf.split(value, len(parts)) for value in found.values()), strict=True)
    ]
    return [
        head.logits(_already(share), inputs, None, weights["head/kernel"], weights["head/bias"])
        for head, share, weights in zip(heads, shares, values, strict=True)
    ]


def _already(outputs: dict[str, tf.Tensor]) -> Callable[..., dict[str, tf.Tensor]]:
    """An encoder that has been called."""
    return lambda *_, **__: outputs
