"""An adapter for each task, in batches of several tasks: each row has that of its task."""

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.bottleneck import values_with_prefix
from adapter_bert_tf.adapters.methods.multitask import TASK_IDS, TASKS, MultitaskConfig
from adapter_bert_tf.adapters.modules import AdapterModule, Function
from adapter_bert_tf.adapters.ops import ROWS, Tensor
from adapter_bert_tf.adapters.registry import register
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview


@register("per_task")
@dataclasses.dataclass(frozen=True)
class PerTaskConfig(MultitaskConfig):
    """An adapter of one shape for each of several tasks, trained together.

    The baseline "Adapters" with a dagger of Mahabadi et al. 2021 (arXiv 2106.04489, Table 1).

    Args:
      adapter: `AdapterConfig` of each, or one as a dict.
      tasks: names of the tasks, in the order of their numbers.

    Raises:
      InputError: if a value is out of range.
    """

    adapter: AdapterConfig
    tasks: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.adapter, Mapping):
            object.__setattr__(self, "adapter", AdapterConfig.from_dict(self.adapter))
        if not isinstance(self.adapter, AdapterConfig):
            raise InputError(f"adapter must be an AdapterConfig. Received: {preview(self.adapter)}")
        self._check_tasks()

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """As `PartsConfig.specs`: `tasks/TASK/` before the names of a task's own adapter."""
        of_one = self.adapter.specs(sizes)
        return {
            f"{TASKS}/{task}/{name}": spec for task in self.tasks for name, spec in of_one.items()
        }

    def parts(
        self,
        values: Mapping[str, Tensor],
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
    ) -> AdapterModule:
        """As `PartsConfig.parts`."""
        return PerTaskModule(self, values, dropouts)

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        """As of one adapter: the rows of all tasks go through the same dropouts."""
        return self.adapter.dropout_rates(sizes)

    def without_lowest(self, count: int, num_layers: int) -> "PerTaskConfig":
        """As of one adapter: no task has one in the lowest layers."""
        return dataclasses.replace(self, adapter=self.adapter.without_lowest(count, num_layers))

    def of_one(self) -> AdapterConfig:
        """As `OfTasks.of_one`."""
        return self.adapter

    def of_each(self, values: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
        """As `OfTasks.of_each`."""
        each = {task: values_with_prefix(values, f"{TASKS}/{task}") for task in self.tasks}
        return {
            task: {name: value for name, value in own.items() if name.startswith("adapters/")}
            for task, own in each.items()
        }

    def summary(self) -> str:
        """As `PartsConfig.summary`."""
        return f"one for each of {', '.join(self.tasks)}: {self.adapter.summary()}"


class PerTaskModule(AdapterModule):
    """Finds the weights of each row's task; the inputs of a call have `task_ids`, `[batch]`.

    Args:
      config: `PerTaskConfig`.
      values: dict from the names of its `specs` to variables or tensors.
      dropouts: as of one adapter.
    """

    def __init__(
        self,
        config: PerTaskConfig,
        values: Mapping[str, Tensor],
        dropouts: Mapping[str, Function] | None = None,
    ) -> None:
        self.config, self.values, self.dropouts = config, values, dropouts

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        """The adapters of the rows."""
        of_tasks = list(self.config.of_each(self.values).values())
        # Stacked first, so that the gradient of each variable is dense.
        rows = {
            name: tf.gather(tf.stack([values[name] for values in of_tasks]), inputs[TASK_IDS])
            for name in of_tasks[0]
        }
        return self.config.adapter.parts(rows, self.dropouts, ROWS)
