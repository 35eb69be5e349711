"""Answers from start and end logits: the best spans of all windows of a question."""

import dataclasses

import numpy as np

from adapter_bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class DecodingSettings:
    """How answers are chosen. Raises `InputError` when no answer could be kept."""

    n_best_size: int = 20  # Answers kept for a question.
    max_answer_length: int = 30  # In word pieces.
    null_allowed: bool = False  # Whether "no answer" is an answer (SQuAD 2.0).
    null_score_diff_threshold: float = 0.0  # The lead that no answer must have over the best one.

    def __post_init__(self) -> None:
        if self.n_best_size < 1 or self.max_answer_length < 1:
            message = (
                "n_best_size and max_answer_length must be at least 1. Received: "
                f"{self.n_best_size} and {self.max_answer_length}"
            )
            raise InputError(message, "n_best_size", "max_answer_length")


@dataclasses.dataclass(frozen=True, slots=True)  # There are 40 of each question.
class Candidate:
    """A span of the context, in characters, with its two logits."""

    start: int
    end: int
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        """The sum of the two logits."""
        return self.start_logit + self.end_logit


class Decoder:
    """Collects the best candidates of each question, window by window, in any order."""

    def __init__(self, settings):
        self.settings = settings
        self._candidates = {}
        self._null = {}

    def best_answer(self, number, question):
        """The best answer's text, even where no answer scores higher."""
        rows = _distinct(self._candidates.get(number, [])[:1], question.context)
        return rows[0]["text"] if rows else ""

    def add(self, question, logits, context_begin, starts, ends, is_best):
        """Adds a `Window` of the question with this number, and its logits `[2, seq]`."""
        n_best, longest = self.settings.n_best_size, self.settings.max_answer_length
        context_logits = logits[:, context_begin : context_begin + len(starts)]
        candidates = self._candidates.get(question, []) + [
            Candidate(int(starts[first]), int(ends[last]), *pair)
            for first, last, *pair in best_spans(context_logits, is_best, n_best, longest)
        ]
        # Sorting is stable: of equal scores the one seen first stays first.
        candidates = sorted(candidates, key=lambda c: (-c.score, c.start, c.end))
        self._candidates[question] = candidates[: 2 * n_best]
        null = Candidate(0, 0, float(logits[0, 0]), float(logits[1, 0]))
        self._null[question] = min(null, self._null.get(question, null), key=lambda c: c.score)

    def answer(self, number, question):
        """The answers to a question: (text, n-best, null odds).

        The texts are slices of the context of the `Question`. The n-best are dicts with `text`,
        `probability`, `start_logit`, `end_logit`, `start`, `end`; null odds is the score of no
        answer minus the best one's, or None if that is not allowed.
        """
        candidates = self._candidates.get(number, [])
        rows = _distinct(candidates, question.context)[: self.settings.n_best_size]
        text, odds = rows[0]["text"] if rows else "", None
        if self.settings.null_allowed:
            null = self._null[number]
            odds = null.score - candidates[0].score if candidates else 0.0
            if odds > self.settings.null_score_diff_threshold:
                text = ""
            rows.append(_row("", None, null.start_logit, null.end_logit))
        rows = rows or [_row("", None, 0.0, 0.0)]
        _add_probabilities(rows)
        return text, rows, odds


def best_spans(logits, is_best, n_best, max_length):
    """The spans with the highest sums of logits `[2, pieces]`, best first.

    A span starts where `is_best`, bool `[pieces]`, is true and has at most `max_length` pieces.
    Only the `n_best` best starts and ends are combined.

    Returns:
      list of (first piece, last piece, start logit, end logit).
    """
    allowed = np.flatnonzero(is_best)
    starts = allowed[np.argsort(-logits[0, allowed], kind="stable")[:n_best]]
    ends = np.argsort(-logits[1], kind="stable")[:n_best]
    first, last = (grid.ravel() for grid in np.meshgrid(starts, ends, indexing="ij"))
    fits = (last >= first) & (last - first < max_length)
    first, last = first[fits], last[fits]
    order = np.argsort(-(logits[0, first] + logits[1, last]), kind="stable")[:n_best]
    return [
        (int(i), int(j), float(logits[0, i]), float(logits[1, j]))
        for i, j in zip(first[order], last[order], strict=True)
    ]


def _distinct(candidates, context):
    """Rows of the candidates, each text once, with its best score."""
    rows = {}
    for candidate in candidates:
        text = context[candidate.start : candidate.end]
        if text not in rows:
            rows[text] = _row(text, candidate, candidate.start_logit, candidate.end_logit)
    return list(rows.values())


def _row(text, candidate, start_logit, end_logit):
    return {
        "text": text,
        "probability": None,
        "start_logit": start_logit,
        "end_logit": end_logit,
        "start": candidate and candidate.start,
        "end": candidate and candidate.end,
    }


def _add_probabilities(rows):
    """Softmax over the scores; `rows` are changed and sorted by it."""
    rows.sort(key=lambda row: -(row["start_logit"] + row["end_logit"]))
    scores = np.array([row["start_logit"] + row["end_logit"] for row in rows])
    weights = np.exp(scores - scores.max())
    for row, weight in zip(rows, weights / weights.sum(), strict=True):
        row["probability"] = float(weight)
