"""The interface of development sets, which analyses evaluate: batches, answers and scores."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard


class DevSet(Protocol):
    """The development set of a plan's task. Answers are of a type of its own.

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
