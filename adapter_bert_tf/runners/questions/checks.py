"""What is odd about questions, said before training: seen already, cut, or not where they say."""

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
    """Dict from question id to the texts of its answers, as the official evaluators read them."""
    return {
        qa["id"]: [answer["text"] for answer in qa.get("answers") or []]
        for qa in questions_in(articles)
    }


def warn_of_seen(learned: Iterable[Question], asked: Sequence[Question], source: str) -> None:
    """Warns of questions to answer that are in the training data too."""
    known = {(question.text, question.context) for question in learned}
    if seen := [q.id for q in asked if (q.text, q.context) in known]:
        logging.warning(
            "%d of %d questions of %s are in the training data too; the first is %r.",
            *(len(seen), len(asked), source, seen[0]),
        )


def warn_of_misplaced(
    asked: Iterable[Question], articles: Iterable[Mapping[str, Any]], source: str
) -> None:
    """Warns that answers count in scores which are not where the file says they are."""
    given = answer_texts(articles)
    if wrong := [q.id for q in asked if len(q.answers) < len(given[q.id])]:
        logging.warning(
            "%s: scores count the answers of these %d questions all the same: the official "
            "evaluators read texts, not places.",
            *(source, len(wrong)),
        )


def warn_of_cut(
    questions: Sequence[Question], encoder: TextEncoder, longest: int, source: str
) -> None:
    """Warns where many questions have more than `longest` word pieces."""
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
