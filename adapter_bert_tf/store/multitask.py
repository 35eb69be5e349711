"""What the config of tasks that were trained together says of each of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.mixed_classifier import HeadOf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.file_names import TASKS  # Also the config's list of tasks is called so.
from adapter_bert_tf.task_types import TASK_TYPES, TableType, TaskType, type_of
from adapter_bert_tf.training.tuning import Tuning

SEVERAL = "several"  # The `head` of such a config.
# What is said of each task.
OF_TASK = ("task", "head", "labels", "regression", "inputs", "metric")
NAME = "name"  # What a task, or an adapter, is called if not as its row of `tasks.TASKS` is.


def is_several(config: Mapping[str, Any]) -> bool:
    """Whether an adapter is of several tasks that were trained together."""
    return bool(config.get("head") == SEVERAL)


def names_of(config: Mapping[str, Any]) -> list[str]:
    """Names of the tasks, in the order of their numbers."""
    return [task_title(task) for task in config[TASKS]]


def task_title(task: Mapping[str, Any]) -> str:
    """The name of one of the tasks of a config."""
    return str(task.get(NAME) or task["task"])


def heads_of(config: Mapping[str, Any]) -> list[HeadOf]:
    """What each task asks of its head, in the order of their numbers."""
    return [head_among(task_title(task), type_of(task), task["labels"]) for task in config[TASKS]]


def head_among(name: str, kind: TaskType, labels: Sequence[str]) -> HeadOf:
    """What a task of several asks of its head. Raises `InputError` where its type has no such.

    Args:
      name: of the task.
      kind: its type.
      labels: of the task.
    """
    if not isinstance(kind, TableType) or kind.mixes_as is None:
        known = [k.name for k in TASK_TYPES.values() if isinstance(k, TableType) and k.mixes_as]
        raise InputError(
            f"Several tasks are trained together if their types are among {known}. Received: "
            f"{kind.name} of {preview(name)}"
        )
    return HeadOf(name, kind.num_outputs(labels), kind.mixes_as == "score")


def config_of(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What a config says of one of its tasks, as that of an adapter of one task says it.

    Raises:
      InputError: when there is no task of that name.
    """
    found = [task for task in config[TASKS] if task_title(task) == name]
    if not found:
        raise InputError(
            f"What was trained holds the tasks {preview(names_of(config))}. Received: "
            f"{preview(name)}"
        )
    return {key: value for key, value in config.items() if key not in (TASKS, NAME)} | found[0]


def whole(
    tasks: Sequence[Mapping[str, Any]], metric: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The part of a config that says which tasks were trained together.

    Args:
      tasks: what a config says of each: `task`, `head`, `labels`, `regression`, `inputs`, `metric`
        and, where there is something to say, `name`, `split_seed`, `fold` and `table`.
      metric: of all of them, if they were evaluated.
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


def unmeasured(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of weights that nobody has evaluated yet."""
    of_tasks = {TASKS: [task | {"metric": None} for task in config.get(TASKS, [])]}
    return {**config, "metric": None} | (of_tasks if is_several(config) else {})


def require_one_task(config: Mapping[str, Any], folder: str) -> None:
    """An adapter must be of one task. Raises `InputError`, which names the folders of such."""
    if not is_several(config):
        return
    names = names_of(config)
    method = config["tuning"]["method"]
    if Tuning(method).changes_base:
        raise InputError(
            f"{folder!r} holds {len(names)} tasks that share an encoder, trained with "
            f"{method}, and cannot be divided. Evaluate, predict with or export the whole: "
            f"the tasks {','.join(names)}."
        )
    raise InputError(
        f"{folder!r} holds {len(names)} tasks that were trained together. Name the folder of one "
        f"of them, for example {folder.rstrip('/')}/{TASKS}/{names[0]}."
    )
