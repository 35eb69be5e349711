"""Development sets for analyses: batches, answers and scores.

A `DevSet` has a `title` for progress lines, the name of the task's first `metric`, the number of
`rows` of all batches without padding, and `columns`, the names of what `describe_example` returns.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.batches import eval_batches, eval_plan
from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard
from adapter_bert_tf.data.questions import records
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.runners.classification.runner import in_file_order
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.runners.questions.runner import decode_answers
from adapter_bert_tf.runners.questions.task_data import SpanData
from adapter_bert_tf.task_types.spans import SPANS
from adapter_bert_tf.tasks import role, squad_metrics


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


class QuestionAnswers(NamedTuple):
    """Answers to all questions in file order, "" for none; scores float `[questions]`, 0 to 1."""

    texts: list[str]
    exact: np.ndarray
    f1: np.ndarray


class QuestionSet:
    """The questions of a plan; answers are `QuestionAnswers`, the metric is the mean F1."""

    metric = SPANS.metrics[0]
    columns = ("id", "question", "answers")

    def __init__(self, plan: Plan) -> None:
        task = plan.only_task
        assert isinstance(task, SpanData)
        if not task.is_scorable:
            raise InputError(
                "--predict_file has no questions with answers. Give a file with answers."
            )
        self._task, self._batches = task, plan.batches
        self._size = plan.limit_batch(plan.batches.evaluate, task.eval_records.count)
        self.title = f"{task.name}, windows"
        self.rows = task.eval_records.count

    def __len__(self) -> int:
        return len(self._task.questions)

    def batches(self, share: HostShard = WHOLE_BATCH) -> tf.data.Dataset:
        longest, pad_to = self._batches.max_seq_length, self._batches.pad_to
        return records.eval_batches(self._task.eval_records, self._size, longest, pad_to, share)

    def answers(self, logits: Sequence[np.ndarray]) -> QuestionAnswers:
        task = self._task
        fields = records.eval_fields(task.eval_records, self._size, self._batches.pad_to)
        texts = decode_answers(task, zip(logits, fields, strict=True)).texts
        return self.from_json([texts[question.id] for question in task.questions])

    def to_json(self, answers: QuestionAnswers) -> list[str]:
        return answers.texts

    def from_json(self, values: list[str]) -> QuestionAnswers:
        task = self._task
        texts = {q.id: text for q, text in zip(task.questions, values, strict=True)}
        null_allowed = task.decoding.null_allowed
        each = squad_metrics.scores_by_question(task.articles, texts, null_allowed)
        exact, f1 = np.array([each[question.id] for question in task.questions], float).T
        return QuestionAnswers(values, exact, f1)

    def score(self, answers: QuestionAnswers, rows: np.ndarray | None = None) -> float:
        f1 = answers.f1 if rows is None else answers.f1[rows]
        # Summed in the order of the official script, for equality to the last digit.
        return sum(f1.tolist()) / len(f1)

    def correct(self, answers: QuestionAnswers) -> np.ndarray:
        is_exact: np.ndarray = answers.exact > 0
        return is_exact

    def answer_texts(self, answers: QuestionAnswers) -> list[str]:
        return answers.texts

    def describe_example(self, number: int) -> list[str]:
        question = self._task.questions[number]
        expected = dict.fromkeys(text for text, _ in question.answers)
        return [question.id, question.text, " | ".join(expected)]


DevSet = ClassSet | QuestionSet


def dev_set(plan: Plan) -> DevSet:
    """The development set of a plan's task. Raises `InputError` without labels."""
    return QuestionSet(plan) if isinstance(plan.only_task, SpanData) else ClassSet(plan)
