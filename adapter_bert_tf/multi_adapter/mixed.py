"""Batches whose rows belong to different tasks."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.multi_adapter.live_task import LiveTask
from adapter_bert_tf.store import contents


@dataclasses.dataclass
class RowGroup:
    """Rows of a batch that can be computed together.

    Args:
      rows: their positions in the batch.
      tasks: their tasks, each once.
      task_indices: the index in `tasks` of each row's task.
    """

    rows: list[int]
    tasks: list[LiveTask]
    task_indices: list[int] = dataclasses.field(default_factory=list)

    def add(self, row: int, task: LiveTask) -> None:
        """Adds a row."""
        if not any(task is other for other in self.tasks):
            self.tasks.append(task)
        self.rows.append(row)
        self.task_indices.append(next(i for i, other in enumerate(self.tasks) if other is task))


def group_key(config: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Returns a key that is equal for tasks that one pass can compute.

    Args:
      config: config of the task's adapter.
      name: name of the task, part of the key for modules that cannot be stacked.
    """
    adapter = contents.adapter_of(config)
    own_name = name if adapter is not None and not adapter.stackable else ""
    frozen = contents.tuning_of(config).frozen_layers
    return repr(config["adapter"]), config["head"], str(frozen), own_name


def stack_weights(
    weights: Sequence[Mapping[str, Tensor]], base: Mapping[str, tf.Variable]
) -> dict[str, tf.Tensor]:
    """Stacks the weights of tasks to a dict from common name to `[tasks, ...]`.

    Weights that a task does not have, such as LayerNorms, come from the base. Heads are padded to
    the same width; the logits of missing labels are -inf.

    Args:
      weights: dict from common name to tensor, for each task.
      base: dict from common name to variable.
    """
    width = max(values["head/bias"].shape[0] for values in weights)
    names = dict.fromkeys(name for values in weights for name in values)
    return {
        name: tf.stack(
            [_pad_head(name, values.get(name, base.get(name)), width) for values in weights]
        )
        for name in names
    }


def _pad_head(name: str, value: Tensor, width: int) -> Tensor:
    if not name.startswith("head/"):
        return value
    paddings = [[0, 0]] * (len(value.shape) - 1) + [[0, width - value.shape[-1]]]
    return tf.pad(value, paddings, constant_values=float("-inf") if name == "head/bias" else 0.0)


def merge_outputs(groups: Sequence[RowGroup], outputs: Sequence[tf.Tensor]) -> tf.Tensor:
    """Merges the outputs of all groups to `[rows, ...]`, in the order of the batch."""
    if outputs[0].shape.rank == 2:
        width = max(output.shape[-1] for output in outputs)
        outputs = [
            tf.pad(output, [[0, 0], [0, width - output.shape[-1]]], constant_values=float("-inf"))
            for output in outputs
        ]
    order = tf.argsort(tf.concat([group.rows for group in groups], 0))
    return tf.gather(tf.concat(outputs, 0), order)
