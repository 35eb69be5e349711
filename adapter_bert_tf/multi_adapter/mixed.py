"""Batches whose rows belong to different tasks."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.store import contents

if TYPE_CHECKING:
    from adapter_bert_tf.multi_adapter.model import LiveTask


@dataclasses.dataclass
class Group:
    """Rows of a batch that can be computed together.

    Args:
      rows: their places in the batch.
      tasks: the tasks among them, each once.
      which: the place in `tasks` of each row's task.
    """

    rows: list[int]
    tasks: list["LiveTask"]
    which: list[int] = dataclasses.field(default_factory=list)

    def add(self, row: int, task: "LiveTask") -> None:
        """Adds a row."""
        if not any(task is other for other in self.tasks):
            self.tasks.append(task)
        self.rows.append(row)
        self.which.append(next(i for i, other in enumerate(self.tasks) if other is task))


def pass_key(config: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """What tasks have in common that one pass can compute: their parts and the kind of their head.

    Args:
      config: of the task's adapter.
      name: of the task; parts that cannot be stacked are computed for it alone.
    """
    adapter = contents.adapter_of(config)
    own = name if adapter is not None and not adapter.stackable else ""
    frozen = contents.tuning_of(config).frozen_layers
    return repr(config["adapter"]), config["head"], str(frozen), own


def stack(
    tasks: Sequence[Mapping[str, Tensor]], base: Mapping[str, tf.Variable]
) -> dict[str, tf.Tensor]:
    """Dict from common name to `[tasks, ...]`.

    What only some tasks have of their own, such as LayerNorms, the others have from the base. Heads
    are made equally wide; the logits of labels that a task does not have are -inf.

    Args:
      tasks: list of dicts from common name to tensor.
      base: dict from common name to variable.
    """
    width = max(values["head/bias"].shape[0] for values in tasks)
    names = dict.fromkeys(name for values in tasks for name in values)
    return {
        name: tf.stack(
            [_widened(name, values.get(name, base.get(name)), width) for values in tasks]
        )
        for name in names
    }


def _widened(name: str, value: Tensor, width: int) -> Tensor:
    if not name.startswith("head/"):
        return value
    missing = [[0, 0]] * (len(value.shape) - 1) + [[0, width - value.shape[-1]]]
    return tf.pad(value, missing, constant_values=float("-inf") if name == "head/bias" else 0.0)


def put_together(groups: Sequence[Group], outputs: Sequence[tf.Tensor]) -> tf.Tensor:
    """The outputs of all groups `[rows, ...]` in the order of the batch."""
    if outputs[0].shape.rank == 2:
        width = max(output.shape[-1] for output in outputs)
        outputs = [
            tf.pad(output, [[0, 0], [0, width - output.shape[-1]]], constant_values=float("-inf"))
            for output in outputs
        ]
    order = tf.argsort(tf.concat([group.rows for group in groups], 0))
    return tf.gather(tf.concat(outputs, 0), order)
