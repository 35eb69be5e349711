"""The development set of a task of classes or scores: its batches, and the metric of answers."""

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.batches import eval_batches, eval_plan
from adapter_bert_tf.data.labels import is_known
from adapter_bert_tf.data.share import WHOLE, Share
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.classification_data import ClassificationData
from adapter_bert_tf.run.one_task import in_file_order
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.tasks import metrics, role
from adapter_bert_tf.tasks.metrics import SURE


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
        self.labels, self._known = labels, is_known(labels)
        self._batches = plan.batches
        size = plan.no_larger(plan.batches.evaluate, len(self.features))
        self._rows = eval_plan(self.features, size, plan.batches.pad_to)

    def __len__(self) -> int:
        return len(self.features)

    def batches(self, share: Share = WHOLE) -> tf.data.Dataset:
        """Inputs, int32 `[batch, seq]`, of rows of similar length; the last batch is filled up.

        Args:
          share: `Share` of each batch.
        """
        longest, pad_to = self._batches.max_seq_length, self._batches.pad_to
        return eval_batches(self.features, self._rows, longest, pad_to, share)

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

    def score(self, answers: np.ndarray, rows: np.ndarray | None = None) -> float:
        """The task's first metric.

        Args:
          answers: of `answers`.
          rows: numbers of the examples that count, with repetitions; None for all.
        """
        chosen = np.arange(len(self)) if rows is None else rows
        chosen = chosen[self._known[chosen]]
        labels, said = self.labels[chosen], answers[chosen]
        if self.task.task.multi_label:
            scored = metrics.OF_SETS[self.metric](labels.astype(int), (said >= SURE).astype(int))
        else:
            said = said.argmax(-1) if said.ndim == 2 else said
            scored = metrics.METRICS[self.metric](labels, said)
        return float(scored)

    def right(self, answers: np.ndarray) -> np.ndarray:
        """bool `[examples]`, whether an answer is the label, or all labels."""
        if self.task.task.multi_label:
            agree: np.ndarray = ((answers >= SURE) == (self.labels > 0)).all(-1)
            return agree
        same: np.ndarray = answers.argmax(-1) == self.labels
        return same
