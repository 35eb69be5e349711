"""The development set of classes, scores or label sets, for analyses."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.batches import eval_batches, eval_plan
from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.tasks import role


class ClassSet:
    """A classification set; answers are float32 `[examples, labels]`, or scores `[examples]`."""

    def __init__(self, plan: Plan) -> None:
        task = plan.only_task
        assert isinstance(task, ClassificationData)
        self._task = task
        split = next(name for name in task.features if role(name) == "dev")
        self._features = task.inputs(split)
        labels = task.labels[split]
        if labels is None:
            raise InputError(f"The {split} set of {task.name} has no labels to score by.")
        self._type = task.task_type
        self._labels, self._known = labels, self._type.is_known(labels)
        self._batches = plan.batches
        size = plan.limit_batch(plan.batches.evaluate, len(self._features))
        self._rows = eval_plan(self._features, size, plan.batches.pad_to)
        self._examples = task.examples[split]
        self.title = task.split_title(split)
        self.metric: str = task.task.metrics[0]
        texts = ("text_a", "text_b")[: len(self._examples.texts()[0])]
        self.columns = ("place", *texts, "label")
        self.rows = len(self)

    def __len__(self) -> int:
        return len(self._features)

    def batches(self, share: HostShard = WHOLE_BATCH) -> tf.data.Dataset:
        """Inputs, int32 `[batch, seq]`, sorted by length; the last batch is padded."""
        longest, pad_to = self._batches.max_seq_length, self._batches.pad_to
        return eval_batches(self._features, self._rows, longest, pad_to, share)

    def answers(self, logits: Sequence[np.ndarray]) -> np.ndarray:
        """The answers in file order, from the float32 logits of each batch."""
        rows = in_file_order(np.concatenate(logits), self._rows, len(self))
        return self._type.predictions(rows)

    def to_json(self, answers: np.ndarray) -> list[object]:
        """Answers as JSON values."""
        return list(answers.tolist())

    def from_json(self, values: list[object]) -> np.ndarray:
        """The answers that `to_json` has converted."""
        return np.array(values, np.float32)

    def score(self, answers: np.ndarray, rows: np.ndarray | None = None) -> float:
        """The metric, 0 to 1, of examples with these numbers; None for all."""
        selected = np.arange(len(self)) if rows is None else rows
        selected = selected[self._known[selected]]
        return self._type.metric(self.metric, self._labels[selected], answers[selected])

    def correct(self, answers: np.ndarray) -> np.ndarray | None:
        """bool `[examples]`, whether each answer is correct; None for scores."""
        return self._type.right(self._labels, answers)

    def answer_texts(self, answers: np.ndarray) -> list[str]:
        """The answers as texts."""
        return self._type.shown(self._task.labels_in_order, answers)

    def describe_example(self, number: int) -> list[str]:
        """Location, texts and label of an example."""
        path, line = self._examples.places[number]
        labels = self._examples.labels or []
        return [f"{path}:{line}", *self._examples.texts()[number], labels[number] or ""]


def in_file_order(rows: np.ndarray, plan: np.ndarray, count: int) -> np.ndarray:
    """Returns the outputs of an `eval_plan`, `[batches * batch_size, ...]`, in file order."""
    is_example = plan.reshape(-1) >= 0
    in_order = np.empty_like(rows[:count])
    in_order[plan.reshape(-1)[is_example]] = rows[is_example]
    return in_order
