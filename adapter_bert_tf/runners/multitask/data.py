"""What the data of several tasks has, whatever their type: positions, features, names."""

import dataclasses
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from adapter_bert_tf.data.batches import Features
from adapter_bert_tf.data.mixture import concatenate
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.multitask import heads_of


@dataclasses.dataclass(frozen=True)
class TaskPosition:
    """The position of a task among several that are trained together.

    Args:
      name: of the task in results and in the adapter.
      number: task id of the task's rows.
      columns: of the model's outputs, those of the task.
    """

    name: str
    number: int
    columns: slice


class PlacedData(TaskData, Protocol):
    """The data of a task that can be one of several."""

    @property
    def position(self) -> TaskPosition | None: ...
    @property
    def training_features(self) -> Features: ...


def positions(saved: SavedAdapter | None, data: Mapping[str, TaskData]) -> dict[str, TaskPosition]:
    """Returns the position of each task, in the order of the saved adapter if there is one."""
    if saved:
        widths = {head.task: head.outputs for head in heads_of(saved.config)}
    else:
        widths = {n: t.task_type.num_outputs(t.labels_in_order) for n, t in data.items()}
    ends = itertools.accumulate(widths.values())
    return {
        name: TaskPosition(name, number, slice(end - widths[name], end))
        for number, (name, end) in enumerate(zip(widths, ends, strict=True))
    }


def require_distinct(noun: str, names: Mapping[str, Collection[str]]) -> None:
    """Raises `InputError` if two tasks would have a file or a result, the `noun`, of one name."""
    owners: dict[str, str] = {}
    for task, own in names.items():
        for name in sorted(own):
            other = owners.setdefault(name.lower(), task)
            if other != task:
                raise InputError(
                    f"The tasks {preview(other)} and {preview(task)} would have one {noun}, "
                    f"{preview(name)}. Give one of them another name, in a YAML file of tasks."
                )


def mixed_features(tasks: Sequence[PlacedData]) -> Features:
    """Returns the training features of all tasks, with the labels of mixed batches."""
    return concatenate([_with_mixed_labels(task) for task in tasks])


def _with_mixed_labels(task: PlacedData) -> Features:
    assert task.position
    features, first = task.training_features, task.position.columns.start
    labels = task.task_type.mixed_labels(features.labels, first)
    return dataclasses.replace(features, labels=labels)
