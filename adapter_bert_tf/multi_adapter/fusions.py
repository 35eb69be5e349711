"""Members and logits of the fusions of an `AdapterModel`."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.methods.mixed import MixedModule
from adapter_bert_tf.adapters.modules import module_from_values
from adapter_bert_tf.errors import Conflict, InputError
from adapter_bert_tf.heads.logits import pooled_logits
from adapter_bert_tf.multi_adapter.live_task import LiveTask
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.members import Member, load_member, member_weights
from adapter_bert_tf.task_types import type_of

NamedAdapters = dict[str, tuple[Mapping[str, Any], Mapping[str, tf.Tensor]]]


def resolve_members(
    members: Any, tasks: Mapping[str, LiveTask], base: Mapping[str, Any]
) -> tuple[Member, ...]:
    """Resolves names of tasks and paths of adapter directories to the members of a new fusion.

    They may be the values of a dict from the names in the fusion. `base` is the fingerprint of the
    base. Raises `InputError`, also for a fusion as member and another base.
    """
    if isinstance(members, str | os.PathLike) or not isinstance(members, Iterable):
        raise InputError(
            "members must be a list of names or folders of adapters, or a dict from names to them. "
            f"Received: {preview(members)}"
        )
    if isinstance(members, Mapping):
        return tuple(_resolve_member(n, source, tasks, base) for n, source in members.items())
    return tuple(_resolve_member(None, source, tasks, base) for source in members)


def _resolve_member(
    name: Any, source: Any, tasks: Mapping[str, LiveTask], base: Mapping[str, Any]
) -> Member:
    if not isinstance(source, str | os.PathLike) or not isinstance(name, str | None) or name == "":
        raise InputError(
            "A member must be the name or folder of an adapter, with a non-empty name or none. "
            f"Received: {preview(source if name is None else {name: source})}"
        )
    task = tasks.get(os.fspath(source)) if isinstance(source, str) else None
    if task is None:
        member = load_member(os.fspath(source), name)
        try:
            check_base(member.config, base)
        except InputError as error:
            location = f"{preview(member.name)} in {preview(os.fspath(source))}"
            raise type(error)(f"The member {location}: {error}", *error.arguments) from error
        return member
    if task.members:
        raise Conflict(
            f"{source!r} is a fusion, which cannot be a member of a fusion. Name its members."
        )
    config = {key: value for key, value in task.current_config().items() if key != "run"}
    return Member.from_values(name or contents.name_of(config), config, task.values)


def fusion_and_members(name: str, task: LiveTask) -> NamedAdapters:
    """(config, values) of a fusion and its members, by name. Raises `InputError`."""
    if not task.members:
        raise InputError(f"{preview(name)} is not a fusion and has no members.")
    if name in (names := [member.name for member in task.members]):
        raise InputError(
            f"The fusion has the name of one of its members: {preview(names)}. Save it and load "
            "it under another name: load_adapter(folder, name=...)."
        )
    adapters: NamedAdapters = {name: (task.config, _to_tensors(task.values))}
    return adapters | {
        member.name: (member.config, _to_tensors(member_weights(member, i, task.values)))
        for i, member in enumerate(task.members)
    }


def _to_tensors(values: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    return {name: tf.convert_to_tensor(value) for name, value in values.items()}


def joint_logits(
    encoder: Any,
    configs: Sequence[Mapping[str, Any]],
    inputs: Mapping[str, tf.Tensor],
    values: Sequence[Mapping[str, tf.Tensor]],
) -> list[tf.Tensor]:
    """The logits of several adapters on the same inputs, in one pass of the base."""
    heads, count = [type_of(config) for config in configs], len(configs)
    modules = [
        module_from_values(contents.adapter_of(config), weights)
        for config, weights in zip(configs, values, strict=True)
    ]
    rows = {name: tf.tile(value, [count, 1]) for name, value in inputs.items()}
    first_only = all(head.logits is pooled_logits for head in heads)
    outputs = encoder(rows, output_range=1 if first_only else None, module=MixedModule(modules))
    splits = {name: tf.split(value, count) for name, value in outputs.items()}
    return [
        head.logits(
            _fixed_encoder({name: parts[i] for name, parts in splits.items()}),
            inputs,
            None,
            weights["head/kernel"],
            weights["head/bias"],
        )
        for i, (head, weights) in enumerate(zip(heads, values, strict=True))
    ]


def _fixed_encoder(outputs: dict[str, tf.Tensor]) -> Callable[..., dict[str, tf.Tensor]]:
    """Returns an encoder with fixed outputs."""
    return lambda *_, **__: outputs
