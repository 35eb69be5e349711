"""The config of a new task of an `AdapterModel`, checked before weights are created."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base import Base
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.multi_adapter.inputs import checked_strings
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import checks, schema
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.task_types import type_named
from adapter_bert_tf.training.tuning import Tuning


def describe_task(
    name: str,
    labels: Any,
    base: Base,
    config: Any,
    head: Any,
    tuning: Any,
    inputs: Mapping[str, Any],
    members: Sequence[Member] = (),
) -> dict[str, Any]:
    """Makes the config of a new task; see `AdapterModel.add_adapter` and `add_fusion`.

    Raises:
      InputError: for a value of another type, an unknown value, or one out of range.
    """
    if not isinstance(tuning, Tuning) or not isinstance(head, str):
        raise InputError(
            "tuning must be a Tuning, and head the name of a head. Received: "
            f"{preview(tuning)} and {preview(head)}"
        )
    adapter = _resolve_adapter(config)
    if adapter and adapter.borrowed_groups and not members:
        raise InputError(f"A {adapter.kind} needs members. Add it with add_fusion.")
    task_config = schema.describe(
        name,
        _resolve_labels(labels, head),
        base.fingerprint(),
        tuning,
        adapter if tuning.needs_adapter else None,
        head,
        inputs,
        **base.named(),
        **({"members": [member.config["sha256"] for member in members]} if members else {}),
    )
    checks.check(task_config, f"Adapter {name!r}")
    if len(task_config["labels"]) == 1:
        raise InputError(
            "Labels must be two or more for classes, and none for scores. Received: "
            f"{preview(task_config['labels'])}"
        )
    return task_config


def _resolve_labels(labels: Any, head: str) -> list[str]:
    """Returns the labels that all tasks of the type have, or checks the given ones."""
    fixed = type_named(head).labels
    return list(fixed) if fixed else checked_strings(labels, "labels must be")


def _resolve_adapter(config: Any) -> ModuleConfig | None:
    if isinstance(config, str) and config in PRESETS:
        return PRESETS[config]
    if config is None or isinstance(config, ModuleConfig):
        return config
    raise InputError(
        f"config must be one of {list(PRESETS)}, a configuration such as AdapterConfig, or None. "
        f"Received: {preview(config)}"
    )
