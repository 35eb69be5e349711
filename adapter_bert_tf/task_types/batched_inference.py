"""Outputs of a model for texts of any number, in batches of similar length."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.batches import tokenize
from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.questions.spans import SpanSettings, Window, make_windows
from adapter_bert_tf.data.questions.squad import Question
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.tasks.span_decoding import Decoder, DecodingSettings

AT_A_TIME = 3  # Batches.
Inputs: TypeAlias = dict[str, np.ndarray]
# From the numbers of the rows and their inputs to their logits, float32 `[batch, ...]`.
RunBatch: TypeAlias = Callable[[np.ndarray, Inputs], np.ndarray]


def class_logits(
    run: RunBatch, columns: Sequence[Sequence[str]], encoder: TextEncoder, batch_size: int
) -> list[np.ndarray]:
    """Logits of texts or pairs, float32 `[outputs]` each, in their order.

    Batches of several adapters may be of different widths, so they are not one array.

    Args:
      run: computes one batch.
      columns: one or two lists of texts, of one length, not empty.
      encoder: `TextEncoder` of the adapter's length.
      batch_size: the most rows of a batch.
    """
    texts = [list(column) for column in columns]
    features = tokenize(Examples(texts[0], texts[1] if texts[1:] else None, None, [], []), encoder)
    found: list[np.ndarray] = [np.empty(0)] * len(features)

    def answered(rows: np.ndarray) -> np.ndarray:
        ids, types = (tf.gather(part, rows) for part in (features.ids, features.types))
        # Steps of 8, as in training, would cost 6% of the rows/s: lengths in a batch hardly differ.
        return run(rows, _padded(ids, types, features.lengths[rows].max()))

    parts = by_length(features.lengths, batch_size)
    for rows, of_rows in zip(parts, overlapping(answered, parts), strict=True):
        for row, logits in zip(rows, of_rows, strict=True):
            found[row] = logits
    return found


def overlapping(answered: Callable[..., np.ndarray], parts: Sequence[Any]) -> Iterator[np.ndarray]:
    """Results of all parts, in order; the first alone, because it traces what the others use.

    A batch by itself leaves cores idle between its products; of several at a time a tenth more rows
    a second were answered on two cores.
    """
    yield answered(parts[0])
    with futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        yield from pool.map(answered, parts[1:])


def by_length(lengths: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Numbers of the rows in batches of similar length and size, none larger than `batch_size`.

    Args:
      lengths: int `[rows]`, of at least one.
      batch_size: the most rows of a batch.
    """
    order = np.argsort(lengths, kind="stable")
    return np.array_split(order, -(-len(order) // batch_size))


def _padded(ids: tf.RaggedTensor, types: tf.RaggedTensor, width: int) -> Inputs:
    """Encoder inputs of ragged rows, as long as the longest."""
    shape = [None, width]
    return {
        "input_word_ids": ids.to_tensor(shape=shape).numpy(),
        "input_type_ids": types.to_tensor(shape=shape).numpy(),
        "input_mask": tf.sequence_mask(ids.row_lengths(), width, tf.int32).numpy(),
    }


def span_answers(
    run: RunBatch,
    columns: Sequence[Sequence[str]],
    encoder: TextEncoder,
    settings: Mapping[str, Any],
    batch_size: int,
) -> Iterator[dict[str, Any]]:
    """The best answer to each question, a slice of its context, in their order.

    Args:
      run: computes one batch; its rows are numbers of questions.
      columns: the questions, and the context of each.
      encoder: `TextEncoder`.
      settings: of the adapter's inputs, for `SpanSettings` and `DecodingSettings`.
      batch_size: the most windows of a batch.
    """
    texts = zip(*columns, strict=True)
    asked = [Question(str(i), question, context) for i, (question, context) in enumerate(texts)]
    windows = list(make_windows(asked, encoder, settings_of(SpanSettings, settings)))
    decoder = Decoder(settings_of(DecodingSettings, settings))
    for rows in by_length(np.array([len(window.ids) for window in windows]), batch_size):
        part = [windows[row] for row in rows]
        numbers = np.array([window.question for window in part])
        for window, logits in zip(part, run(numbers, _of_windows(part)), strict=True):
            decoder.add(
                window.question,
                logits,
                window.context_begin,
                window.starts,
                window.ends,
                window.is_best,
            )
    for number, question in enumerate(asked):
        text, best, _ = decoder.answer(number, question)
        row = next((row for row in best if row["text"] == text), best[0])
        yield {
            "answer": text,
            "score": row["start_logit"] + row["end_logit"],
            "probability": row["probability"],
            "start": row["start"],
            "end": row["end"],
        }


def settings_of(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass made of those of the values that it has fields for."""
    return kind(**{field.name: values[field.name] for field in dataclasses.fields(kind)})


def _of_windows(windows: Sequence[Window]) -> Inputs:
    width = max(len(window.ids) for window in windows)
    places = np.arange(width)
    lengths = np.array([[len(window.ids)] for window in windows])
    begins = np.array([[window.context_begin] for window in windows])
    ids = np.stack([np.pad(window.ids, (0, width - len(window.ids))) for window in windows])
    mask = (places < lengths).astype(np.int32)
    types = ((places >= begins) & (places < lengths)).astype(np.int32)
    return {"input_word_ids": ids, "input_mask": mask, "input_type_ids": types}
