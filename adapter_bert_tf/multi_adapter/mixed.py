"""Batches whose rows belong to different tasks."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.multi_adapter.inputs import INPUT_BOUNDS
from adapter_bert_tf.multi_adapter.live_task import LiveTask
from adapter_bert_tf.store import contents

Inputs = Mapping[str, tf.Tensor]


@dataclasses.dataclass
class RowGroup:
    """Rows of a batch that can be computed together."""

    rows: list[int] = dataclasses.field(default_factory=list)  # Positions in the batch.
    tasks: list[LiveTask] = dataclasses.field(default_factory=list)  # Each once.
    task_indices: list[int] = dataclasses.field(default_factory=list)  # In `tasks`, of each row.

    def add(self, row: int, task: LiveTask) -> None:
        """Adds a row."""
        if not any(task is other for other in self.tasks):
            self.tasks.append(task)
        self.rows.append(row)
        self.task_indices.append(next(i for i, other in enumerate(self.tasks) if other is task))


def group_key(config: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """A key that is equal for tasks, with these configs and names, that one pass can compute."""
    adapter = contents.adapter_of(config)
    own_name = name if adapter is not None and not adapter.stackable else ""
    return *contents.computation(config), own_name


def stack_weights(
    weights: Sequence[Mapping[str, Tensor]], base: Mapping[str, tf.Variable]
) -> dict[str, tf.Tensor]:
    """Stacks the weights of tasks to a dict from common name to `[tasks, ...]`.

    Weights that a task does not have, such as LayerNorms, come from the base. Heads are padded to
    the same width; the logits of missing labels are -inf.
    """
    width = max(values["head/bias"].shape[0] for values in weights)
    names = dict.fromkeys(name for values in weights for name in values)
    return {
        name: tf.stack([_pad_head(name, v.get(name, base.get(name)), width) for v in weights])
        for name in names
    }


def _pad_head(name: str, value: Tensor, width: int) -> Tensor:
    if name not in ("head/kernel", "head/bias"):
        return value
    return _pad_last_axis(value, width, float("-inf") if name == "head/bias" else 0.0)


def _pad_last_axis(value: Tensor, width: int, padding: float) -> tf.Tensor:
    paddings = [[0, 0]] * (len(value.shape) - 1) + [[0, width - value.shape[-1]]]
    return tf.pad(value, paddings, constant_values=padding)


def merge_outputs(groups: Sequence[RowGroup], outputs: Sequence[tf.Tensor]) -> tf.Tensor:
    """Merges the outputs of all groups to `[rows, ...]`, in the order of the batch."""
    widths = {output.shape[-1] for output in outputs}
    if len(widths) > 1:  # Else they may be unknown positions of a graph.
        outputs = [_pad_last_axis(output, max(widths), float("-inf")) for output in outputs]
    order = tf.argsort(tf.concat([group.rows for group in groups], 0))
    return tf.gather(tf.concat(outputs, 0), order)


@dataclasses.dataclass(frozen=True)
class SharedOutputs:
    """Outputs of frozen layers, computed once for each distinct text of a batch."""

    values: tf.Tensor  # float32 `[texts, seq, hidden]`.
    text: np.ndarray  # `[rows]`, the index of each row's text in `values`.

    def gather(self, rows: Sequence[int]) -> tf.Tensor:
        """Gathers the outputs of rows of the batch, `[rows, seq, hidden]`."""
        return tf.gather(self.values, self.text[rows])


def shared_layers(
    row_tasks: Sequence[LiveTask], inputs: Inputs, frozen: Callable[[int, Inputs], tf.Tensor]
) -> dict[int, SharedOutputs]:
    """Computes the outputs of the layers that the tasks of the rows share, by number of layers.

    `frozen` computes a number of layers. In graph mode texts cannot be compared, so nothing is
    shared.
    """
    if not tf.executing_eagerly():
        return {}
    depths = np.array([task.shared_depth for task in row_tasks])
    text = np.concatenate([inputs[name] for name in INPUT_BOUNDS], 1)
    outputs = {}
    for depth in sorted(set(depths.tolist()) - {0}):
        rows = np.flatnonzero(depths == depth)
        _, first, indices = np.unique(text[rows], axis=0, return_index=True, return_inverse=True)
        unique_inputs = {name: tf.gather(inputs[name], rows[first]) for name in INPUT_BOUNDS}
        positions = np.zeros(len(text), np.int32)
        positions[rows] = indices.reshape(-1)
        outputs[depth] = SharedOutputs(frozen(depth, unique_inputs), positions)
    return outputs
