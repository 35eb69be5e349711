"""What analyses ask of a development set: its batches, what logits answer, how good that is."""

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard


class DevSet(abc.ABC):
    """A development set of one task.

    Attributes:
      title: for progress.
      metric: name of the task's first metric.
      rows: number of rows of all batches, without those that only fill up the last one.
      columns: names of what `example` says of an example.
    """

    title: str
    metric: str
    rows: int
    columns: tuple[str, ...]

    @abc.abstractmethod
    def __len__(self) -> int:
        """Number of examples."""

    @abc.abstractmethod
    def batches(self, share: HostShard = WHOLE_BATCH) -> tf.data.Dataset:
        """Inputs, int32 `[batch, seq]`, of rows of similar length; the last batch is filled up.

        Args:
          share: `Share` of each batch.
        """

    @abc.abstractmethod
    def answers(self, logits: Sequence[np.ndarray]) -> Any:
        """What a model answers to the examples, in file order.

        Args:
          logits: of each batch, in the order of `batches`; float32 `[batch, outputs]`, or
            `[batch, 2, seq]` of questions.
        """

    @abc.abstractmethod
    def to_json(self, answers: Any) -> list[Any]:
        """Answers as JSON values."""

    @abc.abstractmethod
    def from_json(self, values: list[Any]) -> Any:
        """Answers that `to_json` has returned."""

    @abc.abstractmethod
    def score(self, answers: Any, rows: np.ndarray | None = None) -> float:
        """The task's first metric, from 0 to 1.

        Args:
          answers: of `answers`.
          rows: numbers of the examples that count, with repetitions; None for all.
        """

    @abc.abstractmethod
    def right(self, answers: Any) -> np.ndarray | None:
        """bool `[examples]`, whether an answer is right; None where there is no right and wrong."""

    @abc.abstractmethod
    def said(self, answers: Any) -> list[str]:
        """The answers as text."""

    @abc.abstractmethod
    def example(self, number: int) -> list[str]:
        """What is said of an example: where it is, its texts, its label."""
