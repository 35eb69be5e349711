"""Warnings about questions: seen in training, cut, or with misplaced answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from adapter_bert_tf.data.checks import WORTH_A_WARNING
from adapter_bert_tf.data.questions.squad import Question
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.tasks.squad_metrics import questions_in

AT_ONCE = 4096  # Questions whose pieces are in memory.


def answer_texts(articles: Iterable[Mapping[str, Any]]) -> dict[Any, list[str]]:
    """Returns a dict from question id to its answers, as the official evaluators read them."""
    return {
        qa["id"]: [answer["text"] for answer in qa.get("answers") or []]
        for qa in questions_in(articles)
    }


def warn_of_seen(training: Iterable[Question], asked: Sequence[Question], source: str) -> None:
    """Warns of questions to answer that are also in the training data."""
    known = {(question.text, question.context) for question in training}
    if seen := [q.id for q in asked if (q.text, q.context) in known]:
        logging.warning(
            "%d of %d questions of %s are also in the training data; the first is %r.",
            *(len(seen), len(asked), source, seen[0]),
        )


def warn_of_misplaced(
    asked: Iterable[Question], articles: Iterable[Mapping[str, Any]], source: str
) -> None:
    """Warns of answers that count in scores although they are not at their position."""
    given = answer_texts(articles)
    if wrong := [q.id for q in asked if len(q.answers) < len(given[q.id])]:
        logging.warning(
            "%s: scores count the misplaced answers of %d questions, because the official "
            "evaluators compare texts without positions.",
            *(source, len(wrong)),
        )


def warn_of_cut(
    questions: Sequence[Question], encoder: TextEncoder, longest: int, source: str
) -> None:
    """Warns if many questions have more than `longest` word pieces."""
    cut = 0
    for first in range(0, len(questions), AT_ONCE):
        texts = [q.text.encode("utf-8", "replace") for q in questions[first : first + AT_ONCE]]
        (pieces,) = encoder.segments(tf.constant(texts))
        cut += int(tf.math.count_nonzero(pieces.row_lengths() > longest))
    if questions and cut / len(questions) > WORTH_A_WARNING:
        logging.warning(
            "%.0f%% of the questions of %s are longer than %d word pieces (--max_query_length), "
            "and cut.",
            *(100 * cut / len(questions), source, longest),
        )
