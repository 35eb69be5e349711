"""The data of one task of a run, as the run sees it."""

from collections.abc import Sequence
from typing import Any, Protocol

from adapter_bert_tf.task_types import TaskType


class TaskData(Protocol):
    """The data of one task of a run.

    Attributes:
      name: of the task.
      count: number of training examples.
      metric: key, in the results, of the metric to choose by; higher is better.
      task_type: `TaskType`.
      labels_in_order: label strings in the order of their ids.
    """

    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def metric(self) -> str: ...
    @property
    def task_type(self) -> TaskType: ...
    @property
    def labels_in_order(self) -> Sequence[str]: ...

    def adapter_config(self) -> dict[str, Any]:
        """Returns the description of the task in a saved adapter."""

    def with_dev_subset(self, most: int, seed: int) -> "TaskData":
        """Returns the data with at most `most` development examples, a stratified subset."""

    def record(self) -> dict[str, Any]:
        """Returns the description of the data in `run.json`."""
