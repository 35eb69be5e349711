"""Base class of the methods for several tasks: task names, and the task of each row."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.registry import TASKS as TASKS
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.variable_specs import Sizes, values_with_prefix
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview

if TYPE_CHECKING:
    from typing_extensions import Self

TASK_IDS = "task_ids"  # The input with the number of each row's task.
MOST_TASKS = 1_000
TASK_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def check_task_names(names: Any) -> None:
    """Raises `InputError` for task names that cannot be names of variables and folders."""
    known = isinstance(names, tuple) and 0 < len(names) <= MOST_TASKS
    known = known and all(isinstance(name, str) and TASK_NAME.fullmatch(name) for name in names)
    if not known or len(set(names)) < len(names):
        raise InputError(
            "Tasks need different names of letters, digits, '_', '-' and '.', at most 64 of them, "
            f"that begin with a letter or a digit. Received: {preview(names)}"
        )


class MultitaskConfig(ModuleConfig):
    """A method in which each of several tasks has variables of its own.

    Attributes:
      tasks: names of the tasks, in the order of their numbers.
    """

    tasks: tuple[str, ...]

    def _check_tasks(self) -> None:
        """Turns a list, as JSON has it, into a tuple. Raises `InputError` for invalid names."""
        if isinstance(self.tasks, list):
            object.__setattr__(self, "tasks", tuple(self.tasks))
        check_task_names(self.tasks)

    @property
    def task_names(self) -> tuple[str, ...]:
        return self.tasks

    def single_task_config(self) -> ModuleConfig | None:
        return None

    def with_tasks(self, names: Sequence[str]) -> Self:
        return dataclasses.replace(self, tasks=tuple(names))  # type: ignore[type-var]

    def values_by_task(self, values: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
        """Dict from each task to its values, under the names of `single_task_config`."""
        return {task: {} for task in self.tasks}

    def values_for_tasks(
        self, values: Mapping[str, Tensor], sources: Mapping[str, str | None]
    ) -> dict[str, Tensor]:
        new_values = {n: value for n, value in values.items() if not n.startswith(f"{TASKS}/")}
        for name, source in sources.items():
            own = _task_values(values, source) if source else self._mean_values(values, name)
            new_values |= {f"{TASKS}/{name}/{key}": value for key, value in own.items()}
        return new_values

    def values_of_task(
        self, values: Mapping[str, Tensor], name: str, source: str | None
    ) -> dict[str, Tensor]:
        own = self.values_for_tasks(values, {name: source})
        return self.with_tasks([name]).values_by_task(own)[name]

    def _mean_values(self, values: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
        if not self.generates:
            raise InputError(
                f"Each task has {self.kind} of its own, and the task {preview(name)} has none. "
                f"Choose the task that it starts from: init_task={self.tasks[0]} or another of "
                f"{preview(list(self.tasks))}.",
                f"init_task={self.tasks[0]}",
            )
        all_tasks = [_task_values(values, task) for task in self.tasks]
        return {
            key: np.mean([np.asarray(own[key]) for own in all_tasks], 0, np.float64).astype("f4")
            for key in all_tasks[0]
        }


@dataclasses.dataclass(frozen=True)
class TaskAdaptersConfig(MultitaskConfig):
    """A method in which each of several tasks has an adapter of the same shape.

    Args:
      adapter: `ModuleConfig` of each, or one as a dict; it is `stackable`.
      tasks: names of the tasks, in the order of their numbers.
    """

    adapter: ModuleConfig
    tasks: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.adapter, Mapping):
            object.__setattr__(self, "adapter", ModuleConfig.from_dict(self.adapter))
        if not isinstance(self.adapter, ModuleConfig) or not self.adapter.stackable:
            raise InputError(
                "adapter must be a configuration of adapters that rows of a batch may have each "
                f"of its own. Received: {preview(self.adapter)}"
            )
        self._check_tasks()

    def single_task_config(self) -> ModuleConfig:
        return self.adapter

    @property
    def learning_rate(self) -> float | None:
        return self.adapter.learning_rate

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        """As of one adapter: the rows of all tasks share the dropouts."""
        return self.adapter.dropout_rates(sizes)

    def without_lowest(self, count: int, num_layers: int) -> TaskAdaptersConfig:
        """The configuration without adapters in the lowest layers, for all tasks."""
        return dataclasses.replace(self, adapter=self.adapter.without_lowest(count, num_layers))


def _task_values(values: Mapping[str, Tensor], task: str) -> dict[str, Tensor]:
    own = values_with_prefix(values, f"{TASKS}/{task}")
    return {name: value for name, value in own.items() if not name.startswith("head/")}


def gather_rows(
    values_by_task: Mapping[str, Mapping[str, Tensor]], task_ids: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Dict from name to `[batch, ...]`, the values of each row's task; ids are int32 `[batch]`."""
    tasks = list(values_by_task.values())
    # Stacked before the gather, so that the gradient of each variable is dense.
    return {
        name: tf.gather(tf.stack([values[name] for values in tasks]), task_ids) for name in tasks[0]
    }
