"""The data of one task of a run, as the run and analyses see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard
from adapter_bert_tf.lazy import tf
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

    def with_dev_subset(self, most: int, seed: int) -> TaskData:
        """Returns the data with at most `most` development examples, a stratified subset."""

    def record(self) -> dict[str, Any]:
        """Returns the description of the data in `run.json`."""


class DevSet(Protocol):
    """The development set of a plan's task. Each type of task has a type of answers.

    Attributes:
      title: for progress lines.
      metric: name of the task's first metric.
      rows: number of rows of all batches, without padding.
      columns: names of what `describe_example` returns.
    """

    @property
    def title(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> Sequence[str]: ...

    def __len__(self) -> int:
        """Returns the number of examples."""

    def batches(self, share: HostShard = WHOLE_BATCH) -> tf.data.Dataset:
        """Returns the inputs, int32 `[batch, seq]`; the last batch is padded."""

    def answers(self, logits: Sequence[np.ndarray]) -> Any:
        """Returns the answers in file order, from the float32 logits of each batch."""

    def to_json(self, answers: Any) -> list[Any]:
        """Returns answers as JSON values."""

    def from_json(self, values: list[Any]) -> Any:
        """Returns the answers that `to_json` has converted."""

    def score(self, answers: Any, rows: np.ndarray | None = None) -> float:
        """Returns the metric, 0 to 1, of examples with these numbers; None for all."""

    def correct(self, answers: Any) -> np.ndarray | None:
        """Returns bool `[examples]`, whether each answer is correct; None for scores."""

    def answer_texts(self, answers: Any) -> list[str]:
        """Returns the answers as texts."""

    def describe_example(self, number: int) -> list[str]:
        """Returns location, texts and label of an example."""
