"""Questions to model inputs: sliding windows over the context, answers as positions in them."""

import dataclasses
import functools
import itertools

import numpy as np
import tensorflow as tf
from absl import logging

from adapter_bert_tf.errors import InputError

QUESTIONS_AT_ONCE = 512


@dataclasses.dataclass(frozen=True)
class SpanSettings:
    """How questions become inputs.

    Args:
      max_seq_length: of an input, in word pieces.
      doc_stride: word pieces between the starts of two windows.
      max_query_length: longest question; longer ones are cut.

    Raises:
      InputError: when no context fits beside the longest question, or the windows do not move on.
    """

    max_seq_length: int = 384
    doc_stride: int = 128
    max_query_length: int = 64

    def __post_init__(self) -> None:
        if self.max_query_length < 1 or self.max_seq_length <= self.max_query_length + 3:
            raise InputError(
                f"max_seq_length must be above max_query_length + 3, that a part of the context "
                f"fits. Received: {self.max_seq_length} and {self.max_query_length}",
                "max_seq_length",
                "max_query_length",
            )
        if self.doc_stride < 1:
            raise InputError(
                f"doc_stride must be at least 1. Received: {self.doc_stride}", "doc_stride"
            )


@dataclasses.dataclass(frozen=True)
class Window:
    """One input `[CLS] question [SEP] part of the context [SEP]`.

    Args:
      question: number of the question in its file.
      ids: int32 `[length]`, word ids.
      context_begin: place of the first context piece; type ids are 1 from here on.
      starts, ends: int32 `[pieces]`, characters of the context that its pieces stand for.
      is_best: bool `[pieces]`, whether no other window shows the piece with more context.
      labels: (first, last) place of the answer; (0, 0), [CLS], if this window does not hold it.
    """

    question: int
    ids: np.ndarray
    context_begin: int
    starts: np.ndarray
    ends: np.ndarray
    is_best: np.ndarray
    labels: tuple[int, int] = (0, 0)


def make_windows(questions, encoder, settings):
    """Yields every `Window` of every question, in order; memory holds a few hundred questions.

    Args:
      questions: list of `Question`.
      encoder: `TextEncoder`.
      settings: `SpanSettings`.
    """
    align = _traced(encoder)
    cls, sep = (encoder.special[f"{name}_id"] for name in ("start_of_sequence", "end_of_segment"))
    for first in range(0, len(questions), QUESTIONS_AT_ONCE):
        part = questions[first : first + QUESTIONS_AT_ONCE]
        texts = list(dict.fromkeys(q.context for q in part))
        contexts = dict(zip(texts, _aligned(align, texts), strict=True))
        for number, (question, (query, _, _)) in enumerate(
            zip(part, _aligned(align, [q.text for q in part]), strict=True), start=first
        ):
            head = [cls, *query[: settings.max_query_length], sep]
            yield from _windows_of(
                number, question, head, sep, contexts[question.context], settings
            )


@functools.lru_cache(maxsize=1)
def _traced(encoder):
    """The encoder's `align` as a graph, which takes seconds to trace."""
    return tf.function(
        encoder.align, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )


def _aligned(align, texts):
    """List of (ids, starts, ends) arrays, one of each a text."""
    encoded = tf.constant([text.encode("utf-8", "replace") for text in texts])
    columns = [
        np.split(part.flat_values.numpy(), part.row_splits.numpy()[1:-1]) for part in align(encoded)
    ]
    return list(zip(*columns, strict=True))


def _windows_of(number, question, head, sep, context, settings):
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
    """(begin, end) of each window over `length` pieces; one empty window over none."""
    step = min(stride, room)
    begins = itertools.takewhile(
        lambda b: b == 0 or b - step + room < length, itertools.count(0, step)
    )
    return [(begin, min(begin + room, length)) for begin in begins]


def best_windows(length, spans):
    """int `[length]`: the window in which each piece has most context on its poorer side.

    Ties go to the longer window, then to the first (Devlin et al. 2019's "maximum context").
    """
    places = np.arange(length)
    scores = np.full((len(spans), length), -1.0)
    for row, (begin, end) in zip(scores, spans, strict=True):
        inside = places[begin:end]
        row[begin:end] = np.minimum(inside - begin, end - 1 - inside) + 0.01 * (end - begin)
    return scores.argmax(0) if length else places


def answer_pieces(question, starts, ends):
    """(first, last) piece of an answer, or None: no answer, or of spaces only.

    Of several answers the first that consists of whole pieces; `8` in `18` does not.
    """
    if question.impossible:
        return None
    found = []
    for text, begin in question.answers:
        inside = np.flatnonzero((ends > begin) & (starts < begin + len(text)))
        if len(inside):
            first, last = int(inside[0]), int(inside[-1])
            found.append((first, last))
            if question.context[starts[first] : ends[last]] == text:
                return found[-1]
    return found[0] if found else None


def training_windows(questions, encoder, settings):
    """Yields the windows to train on.

    Paragraphs come in random order, always the same: a file has them by article, and the shuffle of
    batches does not reach that far. Questions whose answer fits no window are left out and logged.
    """
    questions, lost = _mixed(questions), []
    for number, group in itertools.groupby(
        make_windows(questions, encoder, settings), key=lambda window: window.question
    ):
        windows = list(group)
        answered = questions[number].answers and not questions[number].impossible
        if answered and not any(window.labels[1] for window in windows):
            lost.append(questions[number].id)
        else:
            yield from windows
    if lost:
        logging.warning(
            "%d of %d questions are left out of training, as their answer fits no window: %s",
            len(lost),
            len(questions),
            ", ".join(map(str, lost[:5])),
        )


def _mixed(questions):
    contexts = list(dict.fromkeys(q.context for q in questions))
    order = np.random.default_rng(0).permutation(len(contexts))
    place = dict(zip(contexts, order.tolist(), strict=True))
    return sorted(questions, key=lambda q: place[q.context])
