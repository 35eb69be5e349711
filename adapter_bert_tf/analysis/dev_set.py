"""The development set of a task of classes or scores: its batches, and the metric of answers."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.batches import eval_batches, eval_plan
from adapter_bert_tf.data.labels import is_known
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.classification_data import ClassificationData
from adapter_bert_tf.run.one_task import in_file_order
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.tasks import role


class DevSet:
    """The first development set of a plan's task.

    Args:
      plan: `Plan` of a run that evaluates.

    Attributes:
      metric: name of the task's first metric.
      labels: label ids int `[examples]`, scores, or sets `[examples, labels]`, in file order.

    Raises:
      InputError: when its labels are hidden.
    """

    def __init__(self, plan: Plan) -> None:
        task = plan.only_task
        assert isinstance(task, ClassificationData)
        self.task = task
        self.split = next(name for name in task.features if role(name) == "dev")
        self.features = task.asked(self.split)
        self.metric: str = task.task.metrics[0]
        labels = task.labels[self.split]
        if labels is None:
            raise InputError(f"The {self.split} set of {task.name} has no labels to score by.")
        self.labels = labels
        self._batches = plan.batches
        size = plan.no_larger(plan.batches.evaluate, len(self.features))
        self._rows = eval_plan(self.features, size, plan.batches.pad_to)

    def __len__(self) -> int:
        return len(self.features)

    def batches(self) -> Iterator[dict[str, tf.Tensor]]:
        """Yields inputs, int32 `[batch, seq]`, of rows of similar length; the last is filled up."""
        longest, pad_to = self._batches.max_seq_length, self._batches.pad_to
        yield from eval_batches(self.features, self._rows, longest, pad_to)

    def answers(self, logits: np.ndarray) -> np.ndarray:
        """Probabilities `[examples, labels]` or scores `[examples]`, in file order.

        Args:
          logits: float32 `[rows of all batches, outputs]`, in the order of `batches`.
        """
        rows = in_file_order(logits, self._rows, len(self))
        if self.task.task.regression:
            return rows[:, 0]
        shares: np.ndarray = self.task.head.shares(rows).numpy()
        return shares

    def score(self, answers: np.ndarray) -> float:
        """The task's first metric of answers."""
        known = is_known(self.labels)
        metrics = (self.metric,)
        found = self.task.head.evaluate(metrics, self.labels[known], answers[known])
        return float(found[self.metric])
