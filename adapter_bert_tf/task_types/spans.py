"""Extractive question answering: an answer is a span of a context."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adapter_bert_tf.data.questions.spans import SpanSettings
from adapter_bert_tf.data.questions.squad import Question
from adapter_bert_tf.heads import serving_texts
from adapter_bert_tf.heads.logits import SPAN_LABELS, SPANS_LEAVE_OUT, sequence_logits
from adapter_bert_tf.heads.serving_texts import Config, Pieces, Run, Tensors
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import truncate
from adapter_bert_tf.task_types import report_parts
from adapter_bert_tf.task_types.batched_inference import RunBatch, settings_from, span_answers
from adapter_bert_tf.task_types.details import LONGEST_TEXT, MOST_ERRORS, calibration
from adapter_bert_tf.task_types.task_type import Answer, TaskType
from adapter_bert_tf.tasks import squad_metrics
from adapter_bert_tf.tasks.span_decoding import DecodingSettings

if TYPE_CHECKING:
    from adapter_bert_tf.data.tokenization import TextEncoder
    from adapter_bert_tf.heads.span_labeler import SpanLabeler

AROUND = 160  # Characters of the context, before an answer and after it.
F1_BINS = 10


class Spans(TaskType):
    """Start and end scores for each position of a context (SQuAD 1.1 and 2.0)."""

    name = file_head = "span"
    predicts = "an answer"
    labels = SPAN_LABELS
    text_names = ("question", "context")
    example_texts = ("Where is the cat?", "The cat is on the mat.")
    inputs = dataclasses.asdict(SpanSettings()) | dataclasses.asdict(DecodingSettings())
    longest = "max_query_length"
    logits = staticmethod(sequence_logits)
    command = "run_squad.py"
    unused = SPANS_LEAVE_OUT
    pipeline = "question-answering"
    metrics = ("f1", "exact_match")
    details_kind = "spans"
    report_parts = (
        report_parts.calibration(
            "probability of the answer (mean of a bin)", "share of exact matches", "questions"
        ),
        report_parts.f1_of_answers,
        report_parts.spans,
    )

    def new_model(self, encoder: Any, outputs: int) -> SpanLabeler:
        from adapter_bert_tf.heads.span_labeler import SpanLabeler

        return SpanLabeler(encoder)

    def numeric_outputs(self, logits: tf.Tensor) -> Tensors:
        return {"start_logits": logits[:, 0], "end_logits": logits[:, 1]}

    def without_padding(self, logits: tf.Tensor, length: int) -> tf.Tensor:
        return logits[..., :length]

    def own_logits(self, logits: Any, outputs: int) -> Any:
        return logits

    def check_inputs(self, values: Mapping[str, Any]) -> None:
        for kind in (SpanSettings, DecodingSettings):
            settings_from(kind, values)

    def evaluate(
        self,
        articles: Sequence[Any],
        answers: Mapping[str, str],
        version_2: bool,
        best_answers: Mapping[str, str],
        null_odds: Mapping[str, float],
    ) -> dict[str, float]:
        """Exact match and F1, from 0 to 100; see `squad_metrics.evaluate_v2`."""
        if version_2:
            return squad_metrics.evaluate_v2(articles, answers, best_answers, null_odds)
        return squad_metrics.evaluate_v1(articles, answers)

    def details(self, *answers: Any) -> dict[str, Any]:
        """See `answer_details`."""
        return answer_details(*answers)

    def outputs(
        self,
        run: RunBatch,
        texts: Sequence[Sequence[str]],
        encoder: TextEncoder,
        inputs: Mapping[str, Any],
        batch_size: int,
    ) -> tuple[list[Any], np.ndarray]:
        """Contexts are read in windows; questions are cut."""
        (pieces,) = encoder.segments(tf.constant(texts[0], tf.string))
        are_cut = pieces.row_lengths().numpy() > inputs["max_query_length"]
        return list(span_answers(run, texts, encoder, inputs, batch_size)), are_cut

    def answers(self, outputs: Sequence[Any], config: Config) -> list[Answer]:
        """Dicts with `answer`, `score`, `probability`, `start` and `end` in the context."""
        return list(outputs)

    def columns(self, config: Config) -> list[str]:
        return ["answer", "score", "probability", "start", "end"]

    def serve_texts(self, run: Run, config: Config, pieces: Pieces) -> Any:
        from adapter_bert_tf.heads.serving_spans import Answerer

        answerer = Answerer(run, config["inputs"], pieces.encoder)
        return serving_texts.text_signature(self.text_names, answerer)

    def serve_ids(self, run: Run, config: Config) -> Any:
        return serving_texts.id_signature(lambda inputs: self.numeric_outputs(run(inputs)))


SPANS = Spans()


def answer_details(
    questions: Sequence[Question],
    scores: Mapping[str, tuple[float, float]],
    texts: Mapping[str, str],
    n_best: Mapping[str, Sequence[Mapping[str, Any]]],
    expected: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """The details of answers: the worst by F1, and of these the most confident first.

    All are by question id: `scores` (exact match, F1) from 0 to 1, `texts` ("" for no answer),
    `n_best` as in `Decoder.answer`, and the `expected` texts.
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
