"""An adapter for each of several tasks; each row of a batch uses that of its task."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from adapter_bert_tf.adapters.methods.multitask import (
    TASK_IDS,
    TASKS,
    TaskAdaptersConfig,
    gather_rows,
)
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import ROWS, Tensor
from adapter_bert_tf.adapters.registry import module_for, register
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec, values_with_prefix
from adapter_bert_tf.lazy import tf


@register("per_task")
@dataclasses.dataclass(frozen=True)
class PerTaskConfig(TaskAdaptersConfig):
    """An adapter of one shape for each of several tasks, trained together.

    The baseline "Adapters" with a dagger of Mahabadi et al. 2021 (arXiv 2106.04489, Table 1).
    """

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """Variables `tasks/TASK/...` with the names of a task's adapter."""
        specs = self.adapter.specs(sizes)
        return {
            f"{TASKS}/{task}/{name}": spec for task in self.tasks for name, spec in specs.items()
        }

    def values_by_task(self, values: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
        each = {task: values_with_prefix(values, f"{TASKS}/{task}") for task in self.tasks}
        return {
            task: {name: value for name, value in own.items() if name.startswith("adapters/")}
            for task, own in each.items()
        }

    def stored_config(self) -> PerTaskConfig:
        return dataclasses.replace(self, adapter=self.adapter.stored_config())

    def stored_values(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        others = {n: value for n, value in values.items() if not n.startswith(f"{TASKS}/")}
        for task in self.tasks:
            own = values_with_prefix(values, f"{TASKS}/{task}")  # With the head.
            stored = self.adapter.stored_values(own)
            others |= {f"{TASKS}/{task}/{name}": value for name, value in stored.items()}
        return others

    @property
    def factors(self) -> tuple[str, ...]:
        return self.adapter.factors

    def weighted_sum(
        self, values: Sequence[Mapping[str, np.ndarray]], shares: Sequence[float]
    ) -> tuple[PerTaskConfig, dict[str, np.ndarray]] | None:
        """The sum of each task's adapters."""
        by_task = [self.values_by_task(each) for each in values]
        adapter, sums = self.adapter, dict[str, np.ndarray]()
        for task in self.tasks:
            summed = self.adapter.weighted_sum([each[task] for each in by_task], shares)
            if summed is None:
                return None
            adapter, own = summed
            sums |= {f"{TASKS}/{task}/{name}": value for name, value in own.items()}
        return dataclasses.replace(self, adapter=adapter), sums

    def summary(self) -> str:
        return f"one for each of {', '.join(self.tasks)}: {self.adapter.summary()}"


@module_for(PerTaskConfig)
class PerTaskModule(AdapterModule):
    """The adapters of all tasks; the inputs of a call have `task_ids`, `[batch]`."""

    config: PerTaskConfig

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        """The adapter of each row's task."""
        adapter = self.config.adapter
        by_task = self.config.values_by_task(self.values)
        stored = {task: adapter.stored_values(values) for task, values in by_task.items()}
        rows = gather_rows(stored, inputs[TASK_IDS])
        return adapter.stored_config().module(rows, self.dropouts, ROWS)
