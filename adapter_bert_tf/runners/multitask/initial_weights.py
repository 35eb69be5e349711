"""Several tasks that start from an adapter of several: the source of each task's weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.registry import TASKS, ModuleConfig
from adapter_bert_tf.adapters.variable_specs import values_with_prefix
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.run.init_from import InitialAdapter, fits_head
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.store import SavedAdapter, contents
from adapter_bert_tf.store.multitask import config_of, names_of


def sources_of(initial: InitialAdapter, tasks: Sequence[TaskData]) -> dict[str, str | None]:
    """Returns a dict from each task to the saved task it starts from; None for the mean of all."""
    saved = names_of(initial.saved.config)
    return {task.name: task.name if task.name in saved else initial.task for task in tasks}


def has_head(initial: InitialAdapter, task: TaskData) -> bool:
    """Whether a task starts with a saved head, which has its type and its labels."""
    source = sources_of(initial, [task])[task.name]
    return source is not None and fits_head(config_of(initial.saved.config, source), task)


def assign(
    initial: InitialAdapter,
    model: EncoderModel,
    fingerprint: Mapping[str, Any],
    tasks: Sequence[TaskData],
) -> None:
    """Assigns the saved weights, except to new heads. Raises `InputError` for another base."""
    config, weights = initial.saved.config, initial.saved.weights
    adapter, sources = contents.adapter_of(config), sources_of(initial, tasks)
    values = (adapter or ModuleConfig()).values_for_tasks(weights, sources)
    with_head = [task.name for task in tasks if has_head(initial, task)]
    for task in with_head:
        head = values_with_prefix(weights, f"{TASKS}/{sources[task]}/head")
        values |= {f"{TASKS}/{task}/head/{name}": value for name, value in head.items()}
    new = tuple(f"{TASKS}/{task}/head/" for task in sources if task not in with_head)
    variables = {n: v for n, v in model.named_variables().items() if not n.startswith(new)}
    arrays = {name: np.asarray(value) for name, value in values.items()}
    SavedAdapter(config, arrays).assign_to(variables, fingerprint)


def report(initial: InitialAdapter, tasks: Sequence[TaskData]) -> str:
    """Returns one line about the source of each task's weights."""
    config = initial.saved.config
    start = f"Starting from {initial.folder}, of {', '.join(names_of(config))}"
    sources = sources_of(initial, tasks)
    unused = ""
    if initial.task and all(task == source for task, source in sources.items()):
        unused = f" --init_task={initial.task} has no effect: the adapter has all tasks."
    same = sorted(sources) == sorted(names_of(config))
    if same and all(has_head(initial, task) for task in tasks):
        return f"{start}: all weights.{unused}"
    parts = [f"{start}: all shared weights"]
    adapter = contents.adapter_of(config)
    has_task_weights = adapter is not None and bool(adapter.task_names)
    for task in tasks:
        source = sources[task.name]
        if has_task_weights and source != task.name:
            parts.append(f"{task.name} starts as {source or 'the mean of all'}")
        if not has_head(initial, task):
            parts.append(f"the head of {task.name} is fresh")
    return f"{'; '.join(parts)}.{unused}"
