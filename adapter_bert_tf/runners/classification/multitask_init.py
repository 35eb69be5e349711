"""Several tasks that begin from several: which of them has what of whom."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.methods.multitask import TASKS, MultitaskConfig
from adapter_bert_tf.adapters.variable_specs import values_with_prefix
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.store import SavedAdapter, contents
from adapter_bert_tf.store.multitask import config_of, names_of
from adapter_bert_tf.task_types import type_of


def sources_of(start: InitialAdapter, tasks: Sequence[TaskData]) -> dict[str, str | None]:
    """Dict from each task to the one of `start` that it begins as; None for the mean of all."""
    there = names_of(start.saved.config)
    return {task.name: task.name if task.name in there else start.task for task in tasks}


def has_head(start: InitialAdapter, task: TaskData) -> bool:
    """Whether a task begins with a head of `start`: it is of its kind and its labels."""
    source = sources_of(start, [task])[task.name]
    if source is None:
        return False
    theirs = config_of(start.saved.config, source)
    found = (type_of(theirs).name, theirs["labels"])
    return found == (task.task_type.name, list(task.labels_in_order))


def assign(
    start: InitialAdapter,
    model: EncoderModel,
    fingerprint: dict[str, Any],
    tasks: Sequence[TaskData],
) -> None:
    """Assigns the weights that tasks begin with; fresh heads stay as they are.

    Raises:
      InputError: when the base is another one, or a task has nothing to begin with.
    """
    config, values = start.saved.config, start.saved.weights
    adapter, sources = contents.adapter_of(config), sources_of(start, tasks)
    if isinstance(adapter, MultitaskConfig):
        found = adapter.values_for_tasks(values, sources)
    else:
        found = {n: value for n, value in values.items() if not n.startswith(f"{TASKS}/")}
    heads = {task.name: has_head(start, task) for task in tasks}
    for task, source in sources.items():
        own = values_with_prefix(values, f"{TASKS}/{source}/head") if heads[task] else {}
        found |= {f"{TASKS}/{task}/head/{name}": value for name, value in own.items()}
    fresh = tuple(f"{TASKS}/{task}/head/" for task, taken in heads.items() if not taken)
    variables = {n: v for n, v in model.named_variables().items() if not n.startswith(fresh)}
    arrays = {name: np.asarray(value) for name, value in found.items()}
    SavedAdapter(config, arrays).assign_to(variables, fingerprint)


def report(start: InitialAdapter, tasks: Sequence[TaskData]) -> str:
    """One line that says what the tasks begin with."""
    config = start.saved.config
    begun = f"Starting from {start.folder}, of {', '.join(names_of(config))}"
    sources = sources_of(start, tasks)
    needless = ""
    if start.task and all(task == source for task, source in sources.items()):
        needless = f" --init_task={start.task} has no effect: all tasks are there."
    same = sorted(sources) == sorted(names_of(config))
    if same and all(has_head(start, task) for task in tasks):
        return f"{begun}: all of it.{needless}"
    each = isinstance(contents.adapter_of(config), MultitaskConfig)
    said = [f"{begun}: all that they share"]
    for task in tasks:
        source = sources[task.name]
        if each and source != task.name:
            said.append(f"{task.name} begins as {source or 'the mean of all'}")
        if not has_head(start, task):
            said.append(f"the head of {task.name} is fresh")
    return f"{'; '.join(said)}.{needless}"
