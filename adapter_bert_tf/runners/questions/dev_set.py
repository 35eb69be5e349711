"""The development set of questions, for analyses."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard
from adapter_bert_tf.data.questions import records
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.runners.questions.answers import decode_answers
from adapter_bert_tf.runners.questions.task_data import SpanData
from adapter_bert_tf.task_types.spans import SPANS
from adapter_bert_tf.tasks import squad_metrics


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
