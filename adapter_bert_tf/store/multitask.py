"""Configs of tasks that were trained together: the tasks, and what is recorded of each."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.errors import Conflict, NotFound, Unsupported
from adapter_bert_tf.heads.specs import HeadOf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.file_names import TASKS  # Also the name of the config's list of tasks.
from adapter_bert_tf.task_types import TASK_TYPES, TaskType, type_of
from adapter_bert_tf.training.tuning import Tuning

SEVERAL = "several"  # The `head` of such a config.
OF_TASK = ("task", "head", "labels", "regression", "inputs", "metric")  # Fields of each task.
NAME = "name"  # Name of a task or an adapter, if it is not that of its row of `tasks.TASKS`.

Config = Mapping[str, Any]


def is_several(config: Config) -> bool:
    """Whether several tasks were trained together."""
    return bool(config.get("head") == SEVERAL)


def names_of(config: Config) -> list[str]:
    """Names of the tasks, in the order of their numbers."""
    return [task_title(task) for task in config[TASKS]]


def task_title(task: Mapping[str, Any]) -> str:
    """The name of one of the tasks of a config."""
    return str(task.get(NAME) or task["task"])


def types_of(config: Config) -> dict[str, TaskType]:
    """The type of each task, in the order of their numbers."""
    return {task_title(task): type_of(task) for task in config[TASKS]}


def common_type(types: Mapping[str, TaskType]) -> TaskType:
    """One of the types of tasks that are trained together; all compute their outputs alike.

    Raises `InputError` for types that cannot be in one batch.
    """
    first = next(iter(types.values()))
    if other := next((name for name, kind in types.items() if kind.logits != first.logits), None):
        raise Unsupported(
            "Tasks of these types are not trained together. Received: "
            f"{preview({name: types[name].name for name in (next(iter(types)), other)})}"
        )
    return first


def heads_of(config: Config) -> list[HeadOf]:
    """The head of each task, in the order of their numbers. Raises `InputError`."""
    common_type(types_of(config))
    return [head_among(task_title(task), type_of(task), task["labels"]) for task in config[TASKS]]


def head_among(name: str, kind: TaskType, labels: Sequence[str]) -> HeadOf:
    """The head of one of several tasks. Raises `InputError` if its type cannot be mixed."""
    if not kind.mixes:
        known = [k.name for k in TASK_TYPES.values() if k.mixes]
        raise Unsupported(
            f"Several tasks are trained together if their types are among {known}. Received: "
            f"{kind.name} of {preview(name)}"
        )
    return HeadOf(name, kind.num_outputs(labels), kind.is_score)


def config_of(config: Config, name: str) -> dict[str, Any]:
    """The config of one of the tasks, in the form of a single-task adapter. Raises `InputError`."""
    task = next((task for task in config[TASKS] if task_title(task) == name), None)
    if task is None:
        raise NotFound(
            f"The adapter holds the tasks {preview(names_of(config))}. Received: {preview(name)}"
        )
    return {key: value for key, value in config.items() if key not in (TASKS, NAME)} | task


def whole(
    tasks: Sequence[Mapping[str, Any]], metric: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The values of a config for tasks that were trained together, and for their common metric.

    Each task has the values of `OF_TASK` and, if any, `name`, `split_seed`, `fold` and `table`.
    """
    return {
        "task": "+".join(map(task_title, tasks)),
        "head": SEVERAL,
        "labels": [],
        "regression": False,
        "inputs": {},
        "metric": metric,
        TASKS: [dict(task) for task in tasks],
    }


def unmeasured(config: Config) -> dict[str, Any]:
    """The config without metrics, for weights that nobody has evaluated yet."""
    values = {**config, "metric": None}
    if is_several(config):
        values[TASKS] = [task | {"metric": None} for task in config[TASKS]]
    return values


def require_one_task(config: Config, folder: str) -> None:
    """Raises `InputError` for an adapter of several tasks, with the folders of single ones."""
    if not is_several(config):
        return
    names, method = names_of(config), config["tuning"]["method"]
    if Tuning(method).changes_base:
        raise Conflict(
            f"{folder!r} holds {len(names)} tasks that share an encoder, trained with {method}, "
            "and cannot be divided. Evaluate, predict with or export all its tasks: "
            f"{','.join(names)}."
        )
    raise Conflict(
        f"{folder!r} holds {len(names)} tasks that were trained together. Name the folder of one "
        f"of them, for example {folder.rstrip('/')}/{TASKS}/{names[0]}."
    )
