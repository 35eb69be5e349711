"""Frozen layers that tasks of a batch share, computed once for each distinct text."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from adapter_bert_tf.multi_adapter.inputs import INPUT_BOUNDS
from adapter_bert_tf.multi_adapter.live_task import LiveTask

Inputs = Mapping[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class SharedOutputs:
    """Outputs of the frozen layers for the distinct texts of a batch.

    Args:
      values: float32 `[texts, seq, hidden]`.
      text: `[rows]`, the index of each row's text in `values`.
    """

    values: tf.Tensor
    text: np.ndarray

    def gather(self, rows: Sequence[int]) -> tf.Tensor:
        """Gathers the outputs of rows of the batch, `[rows, seq, hidden]`."""
        return tf.gather(self.values, self.text[rows])


def shared_depth(task: LiveTask) -> int:
    """Returns the number of lowest layers that a task shares with the base."""
    return task.tuning.frozen_layers if task.shares_base else 0


def shared_layers(
    row_tasks: Sequence[LiveTask], inputs: Inputs, frozen: Callable[[int, Inputs], tf.Tensor]
) -> dict[int, SharedOutputs]:
    """Computes the outputs of shared layers, by number of layers.

    In graph mode texts cannot be compared, so nothing is shared.

    Args:
      row_tasks: the task of each row.
      inputs: dict of int32 `[rows, seq]`.
      frozen: function from a number of layers and inputs to the layers' outputs.
    """
    counts = np.array([shared_depth(task) for task in row_tasks])
    if not tf.executing_eagerly():
        return {}
    rows_by_count = {count: np.flatnonzero(counts == count) for count in set(counts.tolist()) - {0}}
    return {
        count: _compute_once(rows, count, inputs, frozen) for count, rows in rows_by_count.items()
    }


def _compute_once(
    rows: np.ndarray, count: int, inputs: Inputs, frozen: Callable[[int, Inputs], tf.Tensor]
) -> SharedOutputs:
    text = np.concatenate([inputs[name] for name in INPUT_BOUNDS], 1)
    _, first, indices = np.unique(text[rows], axis=0, return_index=True, return_inverse=True)
    unique_inputs = {name: tf.gather(inputs[name], rows[first]) for name in INPUT_BOUNDS}
    positions = np.zeros(len(text), np.int32)
    positions[rows] = indices.reshape(-1)
    return SharedOutputs(frozen(count, unique_inputs), positions)
