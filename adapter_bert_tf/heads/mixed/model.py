"""The heads of several tasks side by side, for batches whose rows are of different tasks."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.methods.multitask import TASK_IDS as TASK_IDS
from adapter_bert_tf.adapters.methods.multitask import check_task_names
from adapter_bert_tf.adapters.ops import dense
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.heads.specs import HeadOf as HeadOf
from adapter_bert_tf.heads.specs import mixed_head_name
from adapter_bert_tf.heads.task_model import EncoderModel, new_head

# Of an output that is another task's: after softmax exactly 0, and finite, so that no gradient is
# infinity times zero.
NOT_ITS_OWN = -1e9


class MixedModel(EncoderModel):
    """An encoder, and a head for each of several tasks.

    Each row computes all heads, and keeps the outputs of its own: so there is one static shape and
    one product, whichever tasks a batch holds. A subclass decides what the heads read.

    Args:
      encoder: `AdapterBertEncoder` or `TaskEncoder`.
      heads: `HeadOf` each task, or dicts of their fields, in the order of the tasks' numbers.
      dropout: rate on what the heads read, while training.
    """

    def __init__(
        self,
        encoder: AdapterBertEncoder | TaskEncoder,
        heads: Sequence[HeadOf | Mapping[str, Any]],
        dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(encoder, **kwargs)
        rows = [HeadOf(**head) if isinstance(head, Mapping) else head for head in heads]
        self.head_of = {head.task: head for head in rows}
        check_task_names(tuple(head.task for head in rows))
        self.dropout_rate = dropout
        self.dropout = tf_keras.layers.Dropout(dropout)
        hidden = encoder.config["hidden_size"]
        self.heads = [new_head(hidden, head.outputs, mixed_head_name(head.task)) for head in rows]
        self.built = True

    def outputs_of(
        self, states: tf.Tensor, task_ids: tf.Tensor, training: bool | None = None
    ) -> tf.Tensor:
        """Outputs of all tasks; `NOT_ITS_OWN` where a row is another task's.

        Args:
          states: `[batch, hidden]` or `[batch, seq, hidden]`.
          task_ids: int32 `[batch]`, the number of each row's task.
          training: whether dropout is applied.

        Returns:
          float32 `[batch, outputs]` or `[batch, seq, outputs]`.
        """
        states = tf.cast(self.dropout(states, training=training), tf.float32)
        kernel = tf.concat([head.kernel for head in self.heads], 1)
        outputs = dense(states, kernel, tf.concat([head.bias for head in self.heads], 0))
        owners = [task for task, head in self.head_of.items() for _ in range(head.outputs)]
        is_own = [[owner == task for owner in owners] for task in self.head_of]
        own = tf.gather(tf.constant(is_own), task_ids)
        return tf.where(own if states.shape.rank == 2 else own[:, tf.newaxis], outputs, NOT_ITS_OWN)

    def columns(self, task: str) -> slice:
        """Which outputs belong to a task."""
        names = list(self.head_of)
        before = sum(self.head_of[name].outputs for name in names[: names.index(task)])
        return slice(before, before + self.head_of[task].outputs)

    def head_layers(self) -> dict[str, tf_keras.layers.Dense]:
        """The heads, each under `tasks/TASK/head`."""
        return dict(zip(map(mixed_head_name, self.head_of), self.heads, strict=True))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "heads": [dataclasses.asdict(head) for head in self.head_of.values()],
            "dropout": self.dropout_rate,
        }
