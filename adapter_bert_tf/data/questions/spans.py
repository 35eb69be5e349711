"""Sliding windows over the contexts of questions, with answers as positions."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
from absl import logging

from adapter_bert_tf.adapters.ops import compiled
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.lazy import tf

QUESTIONS_PER_BATCH = 512


@dataclasses.dataclass(frozen=True)
class SpanSettings:
    """Settings of the windows, in word pieces. Raises `InputError` without room for a context."""

    max_seq_length: int = 384  # The most pieces of an input.
    doc_stride: int = 128  # Between the starts of two windows.
    max_query_length: int = 64  # Longer questions are cut.

    def __post_init__(self) -> None:
        if self.max_query_length < 1 or self.max_seq_length <= self.max_query_length + 3:
            message = (
                "max_seq_length must be above max_query_length + 3, to leave room for the "
                f"context. Received: {self.max_seq_length} and {self.max_query_length}"
            )
            raise InputError(message, "max_seq_length", "max_query_length")
        if self.doc_stride < 1:
            message = f"doc_stride must be at least 1. Received: {self.doc_stride}"
            raise InputError(message, "doc_stride")


@dataclasses.dataclass(frozen=True)
class Window:
    """One input `[CLS] question [SEP] part of the context [SEP]`."""

    question: int  # Its index in the file.
    ids: np.ndarray  # int32 `[length]`, word ids.
    context_begin: int  # Position of the first context piece; type ids are 1 from here on.
    starts: np.ndarray  # int32 `[pieces]`, first character of each piece in the context.
    ends: np.ndarray  # int32 `[pieces]`, the character after each piece.
    is_best: np.ndarray  # bool `[pieces]`, whether no other window has more context around it.
    labels: tuple[int, int] = (0, 0)  # First and last position of the answer; [CLS] if outside.


def make_windows(questions, encoder, settings):
    """Yields every `Window` of every `Question`, in order, a few hundred questions at a time."""
    align = _compile_align(encoder)
    cls, sep = encoder.start_id, encoder.end_id
    for first in range(0, len(questions), QUESTIONS_PER_BATCH):
        batch = questions[first : first + QUESTIONS_PER_BATCH]
        texts = list(dict.fromkeys(q.context for q in batch))
        contexts = dict(zip(texts, _align_texts(align, texts), strict=True))
        for number, (question, (query, _, _)) in enumerate(
            zip(batch, _align_texts(align, [q.text for q in batch]), strict=True), start=first
        ):
            head = [cls, *query[: settings.max_query_length], sep]
            yield from _question_windows(
                number, question, head, sep, contexts[question.context], settings
            )


@functools.lru_cache(maxsize=1)
def _compile_align(encoder):
    """Traces the encoder's `align`, which takes seconds."""
    return compiled(encoder.align, input_signature=[tf.TensorSpec([None], tf.string)])


def _align_texts(align, texts):
    """Returns (ids, starts, ends) arrays for each text."""
    encoded = tf.constant([text.encode("utf-8", "replace") for text in texts])
    columns = [
        np.split(part.flat_values.numpy(), part.row_splits.numpy()[1:-1]) for part in align(encoded)
    ]
    return list(zip(*columns, strict=True))


def _question_windows(number, question, head, sep, context, settings):
    ids, starts, ends = context
    answer = answer_pieces(question, starts, ends)
    spans = window_spans(len(ids), settings.max_seq_length - len(head) - 1, settings.doc_stride)
    best = best_windows(len(ids), spans)
    for i, (begin, end) in enumerate(spans):
        labels = (0, 0)
        if answer and begin <= answer[0] and answer[1] < end:
            labels = tuple(len(head) + piece - begin for piece in answer)
        yield Window(
            number,
            np.array([*head, *ids[begin:end], sep], np.int32),
            len(head),
            starts[begin:end],
            ends[begin:end],
            best[begin:end] == i,
            labels,
        )


def window_spans(length, room, stride):
    """Returns (begin, end) of each window over `length` pieces; one empty window for 0 pieces."""
    step = min(stride, room)
    begins = itertools.takewhile(
        lambda b: b == 0 or b - step + room < length, itertools.count(0, step)
    )
    return [(begin, min(begin + room, length)) for begin in begins]


def best_windows(length, spans):
    """Returns the window with the maximum context for each piece, int `[length]`.

    The context is counted on the piece's shorter side. Ties go to the longer window, then to the
    first (Devlin et al. 2019's "maximum context").
    """
    windows, best = np.zeros(length, int), np.full(length, -1.0)
    for window, (begin, end) in enumerate(spans):
        inside = np.arange(end - begin)
        scores = np.minimum(inside, inside[::-1]) + 0.01 * (end - begin)
        is_better = scores > best[begin:end]
        windows[begin:end][is_better] = window
        best[begin:end][is_better] = scores[is_better]
    return windows


def answer_pieces(question, starts, ends):
    """Returns the (first, last) piece of an answer; None for no answer or only spaces.

    With several answers it is the first that consists of whole pieces (`8` in `18` does not).
    """
    if question.impossible:
        return None
    spans = []
    for text, begin in question.answers:
        inside = np.flatnonzero((ends > begin) & (starts < begin + len(text)))
        if len(inside):
            first, last = int(inside[0]), int(inside[-1])
            spans.append((first, last))
            if question.context[starts[first] : ends[last]] == text:
                return spans[-1]
    return spans[0] if spans else None


def training_windows(questions, encoder, settings):
    """Yields the windows for training.

    Paragraphs come in a fixed random order: a file groups them by article, and the shuffle buffer
    is smaller than an article. Questions whose answer fits into no window are skipped and logged.
    """
    questions, skipped = _shuffle_paragraphs(questions), []
    for number, group in itertools.groupby(
        make_windows(questions, encoder, settings), key=lambda window: window.question
    ):
        windows = list(group)
        has_answer = questions[number].answers and not questions[number].impossible
        if has_answer and not any(window.labels[1] for window in windows):
            skipped.append(questions[number].id)
        else:
            yield from windows
    if skipped:
        logging.warning(
            f"{len(skipped)} of {len(questions)} questions are skipped in training: their answer "
            f"fits into no window: {', '.join(map(str, skipped[:5]))}"
        )


def _shuffle_paragraphs(questions):
    contexts = list(dict.fromkeys(q.context for q in questions))
    order = np.random.default_rng(0).permutation(len(contexts))
    position = dict(zip(contexts, order.tolist(), strict=True))
    return sorted(questions, key=lambda q: position[q.context])
