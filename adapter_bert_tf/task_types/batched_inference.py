"""Outputs of a model for texts of any number, in batches of similar length."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.questions.spans import SpanSettings, Window, make_windows
from adapter_bert_tf.data.questions.squad import Question
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.tasks.span_decoding import Decoder, DecodingSettings

if TYPE_CHECKING:
    from adapter_bert_tf.data.tokenization import TextEncoder

AT_A_TIME = 3  # Batches.
Inputs: TypeAlias = dict[str, np.ndarray]
# From the numbers of the rows and their inputs to their logits, float32 `[batch, ...]`.
RunBatch: TypeAlias = Callable[[np.ndarray, Inputs], np.ndarray]


def class_logits(
    run: RunBatch, columns: Sequence[Sequence[str]], encoder: TextEncoder, batch_size: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Logits of one or two lists of texts, float32 `[outputs]` each, in their order.

    Batches of several adapters may be of different widths, so the result is a list of arrays. `run`
    computes a batch of at most `batch_size` rows. Also returns which rows are cut, bool `[rows]`.
    """
    from adapter_bert_tf.data.batches import batch_encoder, tokenize
    from adapter_bert_tf.data.tokenization import pad_inputs

    texts = [list(column) for column in columns]
    if len(texts[0]) <= batch_size:
        inputs, lengths, full = batch_encoder(encoder, len(texts)).padded(map(tf.constant, texts))
        return list(run(np.arange(len(lengths)), inputs)), full > lengths
    features = tokenize(Examples(texts[0], texts[1] if texts[1:] else None, None, [], []), encoder)
    logits: dict[int, np.ndarray] = {}

    def compute(rows: np.ndarray) -> np.ndarray:
        ids, types = (tf.gather(part, rows) for part in (features.ids, features.types))
        # Steps of 8, as in training, would cost 6% of the rows/s: lengths in a batch hardly differ.
        inputs = pad_inputs(ids, types, features.lengths[rows].max())
        return run(rows, {name: values.numpy() for name, values in inputs.items()})

    parts = by_length(features.lengths, batch_size)
    for rows, part_logits in zip(parts, map_parallel(compute, parts), strict=True):
        logits.update(zip(rows.tolist(), part_logits, strict=True))
    return [logits[row] for row in range(len(features))], features.cut


def map_parallel(compute: Callable[..., np.ndarray], parts: Sequence[Any]) -> Iterator[np.ndarray]:
    """Maps parts in order, the first alone, because it traces the function for the others.

    A single batch leaves cores idle between its products: with several at a time, two cores answer
    10% more rows a second.
    """
    yield from map(compute, parts[:1])
    with futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        yield from pool.map(compute, parts[1:])


def by_length(lengths: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Numbers of rows in batches of similar length and size; `lengths` are int `[rows]`."""
    order = np.argsort(lengths, kind="stable")
    return np.array_split(order, -(-len(order) // batch_size))


def span_answers(
    run: RunBatch,
    columns: Sequence[Sequence[str]],
    encoder: TextEncoder,
    settings: Mapping[str, Any],
    batch_size: int,
) -> Iterator[dict[str, Any]]:
    """The best answer to each question, a slice of its context, in their order.

    `columns` are the questions and their contexts; `run` computes a batch of at most `batch_size`
    windows, its rows being numbers of questions.
    """
    texts = zip(*columns, strict=True)
    questions = [Question(str(i), question, context) for i, (question, context) in enumerate(texts)]
    windows = list(make_windows(questions, encoder, settings_from(SpanSettings, settings)))
    decoder = Decoder(settings_from(DecodingSettings, settings))
    for rows in by_length(np.array([len(window.ids) for window in windows]), batch_size):
        part = [windows[row] for row in rows]
        numbers = np.array([window.question for window in part])
        for window, logits in zip(part, run(numbers, _window_inputs(part)), strict=True):
            character_spans = window.starts, window.ends, window.is_best
            decoder.add(window.question, logits, window.context_begin, *character_spans)
    for number, question in enumerate(questions):
        text, best, _ = decoder.answer(number, question)
        row = next((row for row in best if row["text"] == text), best[0])
        yield {
            "answer": text,
            "score": row["start_logit"] + row["end_logit"],
            "probability": row["probability"],
            "start": row["start"],
            "end": row["end"],
        }


def settings_from(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass of the values for its fields."""
    return kind(**{field.name: values[field.name] for field in dataclasses.fields(kind)})


def _window_inputs(windows: Sequence[Window]) -> Inputs:
    width = max(len(window.ids) for window in windows)
    places = np.arange(width)
    lengths = np.array([[len(window.ids)] for window in windows])
    begins = np.array([[window.context_begin] for window in windows])
    ids = np.stack([np.pad(window.ids, (0, width - len(window.ids))) for window in windows])
    mask = (places < lengths).astype(np.int32)
    types = ((places >= begins) & (places < lengths)).astype(np.int32)
    return {"input_word_ids": ids, "input_mask": mask, "input_type_ids": types}
