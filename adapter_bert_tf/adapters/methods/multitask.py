"""What parts of several tasks have in common: names of tasks, and each row's number of one."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from adapter_bert_tf.adapters.methods.bottleneck import values_with_prefix
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

TASKS = "tasks"  # What the names of a task's variables begin with.
TASK_IDS = "task_ids"  # The input that says which task a row is of.
MOST_TASKS = 1_000


def check_task_names(names: Any) -> None:
    """Names of tasks are names of variables and of folders. Raises `InputError`."""
    known = isinstance(names, tuple) and 0 < len(names) <= MOST_TASKS
    known = known and all(isinstance(name, str) and _is_name(name) for name in names)
    if not known or len(set(names)) < len(names):
        raise InputError(
            "Tasks need different names of letters, digits, '_', '-' and '.', at most 64 of them, "
            f"that begin with a letter or a digit. Received: {preview(names)}"
        )


def _is_name(name: str) -> bool:
    plain = name.isascii() and all(c.isalnum() or c in "_-." for c in name)
    return plain and 0 < len(name) <= 64 and name[0].isalnum()


class MultitaskConfig(ModuleConfig):
    """A configuration of parts in which each of several tasks has something of its own.

    Attributes:
      generates: whether the parts of a task are computed, so that they are the same on another
        machine only but for rounding.
      tasks: names of the tasks, in the order of their numbers.
    """

    generates: ClassVar[bool] = False
    tasks: tuple[str, ...]

    def _check_tasks(self) -> None:
        """Makes a list a tuple, as JSON has none. Raises `InputError`."""
        if isinstance(self.tasks, list):
            object.__setattr__(self, "tasks", tuple(self.tasks))
        check_task_names(self.tasks)

    def of_one(self) -> ModuleConfig | None:
        """The configuration of the parts of one task alone; None where it has none."""
        return None

    def of_each(self, values: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
        """Dict from each task to the values of its parts, by the names that `of_one` has for them.

        Args:
          values: dict from the names of `specs` to variable, array or tensor.
        """
        return {task: {} for task in self.tasks}

    def for_tasks(
        self, values: Mapping[str, Tensor], sources: Mapping[str, str | None]
    ) -> dict[str, Tensor]:
        """Values for this configuration with other tasks; those of heads are left out.

        Args:
          values: as in `of_each`.
          sources: dict from each of the other tasks to the one whose values it has; None: the mean
            of all, where that says something.

        Raises:
          InputError: where it says nothing.
        """
        found = {n: value for n, value in values.items() if not n.startswith(f"{TASKS}/")}
        for name, source in sources.items():
            own = self._own(values, source) if source else self._mean(values, name)
            found |= {f"{TASKS}/{name}/{key}": value for key, value in own.items()}
        return found

    def _own(self, values: Mapping[str, Tensor], task: str) -> dict[str, Tensor]:
        own = values_with_prefix(values, f"{TASKS}/{task}")
        return {name: value for name, value in own.items() if not name.startswith("head/")}

    def _mean(self, values: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
        if not self.generates:
            raise InputError(
                f"Each task has {self.kind} of its own, and the task {preview(name)} has none. "
                f"Name the one that it begins as: init_task={self.tasks[0]} or another of "
                f"{preview(list(self.tasks))}.",
                f"init_task={self.tasks[0]}",
            )
        all_tasks = [self._own(values, task) for task in self.tasks]
        return {
            key: np.mean([np.asarray(own[key]) for own in all_tasks], 0, np.float64).astype("f4")
            for key in all_tasks[0]
        }
