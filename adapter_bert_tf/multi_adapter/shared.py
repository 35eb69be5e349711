"""Layers that no task of a batch has changed: computed once for each text, whatever the tasks."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from adapter_bert_tf.multi_adapter.inputs import BOUNDS
from adapter_bert_tf.multi_adapter.live_task import LiveTask

Inputs = Mapping[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Shared:
    """What the frozen layers give for the different texts of a batch.

    Args:
      values: float32 `[texts, seq, hidden]`.
      text: `[rows]`, the place of each row's text in `values`.
    """

    values: tf.Tensor
    text: np.ndarray

    def of(self, rows: Sequence[int]) -> tf.Tensor:
        """For rows of the batch, `[rows, seq, hidden]`."""
        return tf.gather(self.values, self.text[rows])


def frozen_layers(task: LiveTask) -> int:
    """How many lowest layers are those of the shared base."""
    return task.tuning.frozen_layers if task.shares_base else 0


def shared_layers(
    of_rows: Sequence[LiveTask], inputs: Inputs, frozen: Callable[[int, Inputs], tf.Tensor]
) -> dict[int, Shared]:
    """Dict from a number of frozen layers to what they give, for the rows whose task has so many.

    In a graph of the caller's own nothing is known of the texts, and nothing is shared.

    Args:
      of_rows: the task of each row.
      inputs: dict of int32 `[rows, seq]`.
      frozen: function of a number of layers and inputs.
    """
    counts = np.array([frozen_layers(task) for task in of_rows])
    if not tf.executing_eagerly():
        return {}
    rows_of = {count: np.flatnonzero(counts == count) for count in set(counts.tolist()) - {0}}
    return {count: _once(rows, count, inputs, frozen) for count, rows in rows_of.items()}


def _once(
    rows: np.ndarray, count: int, inputs: Inputs, frozen: Callable[[int, Inputs], tf.Tensor]
) -> Shared:
    text = np.concatenate([inputs[name] for name in BOUNDS], 1)
    _, first, which = np.unique(text[rows], axis=0, return_index=True, return_inverse=True)
    once = {name: tf.gather(inputs[name], rows[first]) for name in BOUNDS}
    places = np.zeros(len(text), np.int32)
    places[rows] = which.reshape(-1)
    return Shared(frozen(count, once), places)
