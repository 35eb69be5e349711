"""What a new task of an `AdapterModel` is to be, checked before a weight is made."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base import Base
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import HEADS
from adapter_bert_tf.multi_adapter.inputs import strings
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import checks, schema
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.training.tuning import Tuning


def new_task(
    name: str,
    labels: Any,
    base: Base,
    config: Any,
    head: Any,
    tuning: Any,
    inputs: Mapping[str, Any],
    members: Sequence[Member] = (),
) -> dict[str, Any]:
    """The config of a task that is to be added; see `AdapterModel.add_adapter` and `add_fusion`.

    Raises:
      InputError: for whatever is of another type, unknown or out of range.
    """
    if not isinstance(tuning, Tuning) or not isinstance(head, str):
        raise InputError(
            "tuning is a Tuning, and head a head's name. Received: "
            f"{preview(tuning)} and {preview(head)}"
        )
    adapter = _adapter_of(config)
    if adapter and adapter.borrowed and not members:
        raise InputError(f"A {adapter.kind} needs members: add_fusion makes one. Received: none")
    described = schema.describe(
        name,
        _labels_of(labels, head),
        base.fingerprint(),
        tuning,
        adapter if tuning.needs_adapter else None,
        head,
        inputs,
        **base.named(),
        **({"members": [member.config["sha256"] for member in members]} if members else {}),
    )
    checks.check(described, f"Adapter {name!r}")
    if len(described["labels"]) == 1:
        raise InputError(
            "Classes need two labels or more, scores none. Received: "
            f"{preview(described['labels'])}"
        )
    return described


def _labels_of(labels: Any, head: str) -> list[str]:
    """The labels, or those that the head itself has."""
    fixed = HEADS[head].labels if head in HEADS else None
    if fixed is not None:
        return list(fixed)
    return strings(labels, "Labels are")


def _adapter_of(config: Any) -> ModuleConfig | None:
    if isinstance(config, str) and config in PRESETS:
        return PRESETS[config]
    if config is None or isinstance(config, ModuleConfig):
        return config
    raise InputError(
        f"config is one of {list(PRESETS)}, a configuration such as AdapterConfig, or None. "
        f"Received: {preview(config)}"
    )
