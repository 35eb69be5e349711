"""Details of the answers of an evaluation: the worst ones, F1, and calibration."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.data.questions.squad import Question
from adapter_bert_tf.sanitize import truncate
from adapter_bert_tf.task_types.details import LONGEST_TEXT, MOST_ERRORS, calibration

AROUND = 160  # Characters of the context, before an answer and after it.
F1_BINS = 10


def answer_details(
    questions: Sequence[Question],
    scores: Mapping[str, tuple[float, float]],
    texts: Mapping[str, str],
    n_best: Mapping[str, Sequence[Mapping[str, Any]]],
    expected: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """The details of answers: the worst by F1, and of these the most confident first.

    Args:
      questions: all questions.
      scores: dict from question id to (exact match, F1), from 0 to 1.
      texts: the answers, "" for none.
      n_best: lists of dicts, see `Decoder.answer`.
      expected: the texts that the answers were scored by, none where there is no answer.
    """
    chosen = [_row(n_best[q.id], texts[q.id]) for q in questions]
    sure = np.array([row["probability"] for row in chosen])
    exact, f1 = np.array([scores[q.id] for q in questions], float).T
    wrong = np.flatnonzero(f1 < 1)
    order = wrong[np.lexsort((-sure[wrong], f1[wrong]))][:MOST_ERRORS]
    counts, _ = np.histogram(f1, F1_BINS, (0, 1))
    return {
        "kind": "spans",
        "examples": len(questions),
        "calibration": calibration(sure, exact > 0),
        "f1_counts": counts.tolist(),
        "errors": len(wrong),
        "shown": [
            _example(questions[i], chosen[i], texts[questions[i].id], f1[i], expected)
            for i in order
        ],
    }


def _row(rows: Sequence[Mapping[str, Any]], text: str) -> Mapping[str, Any]:
    """The row of an n-best list that is the answer."""
    return next((row for row in rows if row["text"] == text), {"probability": 0.0})


def _example(
    question: Question,
    row: Mapping[str, Any],
    text: str,
    f1: float,
    expected: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    different = list(dict.fromkeys(expected[question.id]))[:3]
    return {
        "question": truncate(question.text, LONGEST_TEXT),
        "expected": [truncate(answer, LONGEST_TEXT) for answer in different],
        "given": truncate(text, LONGEST_TEXT),
        "f1": round(float(f1), 4),
        "probability": round(float(row["probability"]), 6),
        "context": _excerpt(question, row),
    }


def _excerpt(question: Question, row: Mapping[str, Any]) -> list[str]:
    """The context [before, at, after] the expected answer, or else the predicted one."""
    text, start = question.answers[0] if question.answers else ("", row.get("start") or 0)
    end = start + len(text) if text else row.get("end") or start
    before, after = question.context[:start], question.context[end:]
    return [
        ("... " if len(before) > AROUND else "") + before[-AROUND:],
        truncate(question.context[start:end], LONGEST_TEXT),
        after[:AROUND] + (" ..." if len(after) > AROUND else ""),
    ]
