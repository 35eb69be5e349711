"""Types of tasks: one object each, found by its name or by an adapter's file."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.errors import Conflict, InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types.classification import Classification
from adapter_bert_tf.task_types.masked_words import MASKED_WORDS
from adapter_bert_tf.task_types.multi_label import MultiLabel
from adapter_bert_tf.task_types.regression import Regression
from adapter_bert_tf.task_types.spans import SPANS
from adapter_bert_tf.task_types.table_type import TableType
from adapter_bert_tf.task_types.tags import TAGS
from adapter_bert_tf.task_types.task_type import TaskType

TASK_TYPES: dict[str, TaskType] = {
    kind.name: kind
    for kind in (Classification(), Regression(), MultiLabel(), SPANS, TAGS, MASKED_WORDS)
}


def type_of(config: Mapping[str, Any]) -> TaskType:
    """The type of an adapter's task, by its config. Raises `InputError` for an unknown one."""
    head, regression = config["head"], config["regression"]
    candidates = [kind for kind in TASK_TYPES.values() if kind.file_head == head]
    if not candidates:
        names = dict.fromkeys(kind.file_head for kind in TASK_TYPES.values())
        raise InputError(f"head must be one of {list(names)}. Received: {preview(head)}")
    matches = (kind for kind in candidates if kind.file_regression == regression)
    return next(matches, TASK_TYPES["regression"])


def type_named(name: str, labels: Sequence[str] | None = None) -> TaskType:
    """The type with this name, a key of `TASK_TYPES`. Raises `InputError` for an unknown one.

    `labels` are those of the task. Without labels a name stands for the type of its head that has
    none, as `classification` does for scores.
    """
    if name not in TASK_TYPES:
        raise InputError(f"head must be one of {list(TASK_TYPES)}. Received: {preview(name)}")
    kind = TASK_TYPES[name]
    if labels is None or labels:
        return kind
    same_head = (other for other in TASK_TYPES.values() if other.file_head == kind.file_head)
    return next((other for other in same_head if other.labels == ()), kind)


def table_type(name: str) -> TableType:
    """The type of a name, of tasks whose examples are rows of tables. Raises `InputError`."""
    kind = TASK_TYPES.get(name)
    if not isinstance(kind, TableType):
        known = [name for name, other in TASK_TYPES.items() if isinstance(other, TableType)]
        raise InputError(f"task_type must be one of {known}. Received: {preview(name)}")
    return kind


def chosen_type(settings: Mapping[str, Any]) -> TableType:
    """The type that settings of a command choose; classification by default.

    `settings` are values by name: `task_type`, its older spellings, and any others. Raises
    `InputError` for an unknown type, or where they choose more than one.
    """
    setting_by_type = {
        kind.name: f"{name}={value}"
        for kind in TASK_TYPES.values()
        for name, value in kind.settings.items()
        if settings.get(name) == value
    }
    if name := settings.get("task_type"):
        setting_by_type[table_type(name).name] = f"task_type={name}"
    if len(setting_by_type) > 1:
        words = list(setting_by_type.values())
        raise Conflict(f"A task has one type. Received: {' and '.join(words)}", *words)
    return table_type(next(iter(setting_by_type), "classification"))


def type_of_details(kind: Any) -> TaskType | None:
    """The type whose `eval_details.json` has this `kind`, or None."""
    return next((t for t in TASK_TYPES.values() if t.details_kind == kind), None)
