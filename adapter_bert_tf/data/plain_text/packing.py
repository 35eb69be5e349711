"""Texts to sequences of word pieces, all of one length but the last."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from adapter_bert_tf.adapters.ops import compiled
from adapter_bert_tf.data.in_order import map_in_order
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.lazy import tf

BATCH_TEXTS, BATCH_BYTES = 1024, 1 << 20  # Texts that are tokenized together, at most.


@dataclasses.dataclass
class Counts:
    """What has been packed so far."""

    texts: int = 0
    pieces: int = 0
    unknown: int = 0


def pack(
    texts: Iterable[bytes], encoder: TextEncoder, counts: Counts | None = None
) -> Iterator[np.ndarray]:
    """Yields sequences `[CLS] pieces [SEP]` of `max_seq_length` positions, in the order of texts.

    A text follows another with a [SEP] between them, and goes on in the next sequence where it does
    not end with its own: no piece is lost or repeated. Only the last sequence may be shorter.

    Args:
      texts: UTF-8.
      encoder: of the base's vocabulary; its `max_seq_length` is the length.
      counts: is kept up to date.

    Yields:
      int32 `[sequences, length]`, for each batch of texts; at last the incomplete sequence as
      `[1, shorter]`, if there is one.
    """
    counts = Counts() if counts is None else counts
    encode = _encoder(encoder)
    start, end, room = encoder.start_id, encoder.end_id, encoder.max_seq_length - 2
    rest = np.zeros(0, np.int32)  # Each text in it is followed by a [SEP].
    for batch, (flat, splits) in map_in_order(encode, _batches(texts)):
        counts.texts += len(batch)
        counts.pieces += len(flat)
        counts.unknown += int(np.count_nonzero(flat == encoder.unknown_id))
        ends = splits[1:][np.diff(splits) > 0]
        whole, rest = _cut(np.concatenate([rest, np.insert(flat, ends, end)]), room, end)
        if whole:
            yield _framed(np.stack(whole), start, end)
    if len(rest):
        yield _framed(rest[np.newaxis, : -1 if rest[-1] == end else None], start, end)


def _cut(pieces: np.ndarray, room: int, end: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The complete parts of `room` pieces, and the rest; the end of a part needs no [SEP]."""
    parts, position = [], 0
    while len(pieces) - position > room:
        parts.append(pieces[position : position + room])
        position += room
        position += int(pieces[position] == end)
    return parts, pieces[position:]


def _framed(pieces: np.ndarray, start: int, end: int) -> np.ndarray:
    return np.pad(pieces, ((0, 0), (1, 1)), constant_values=((0, 0), (start, end)))


def _batches(texts: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == BATCH_TEXTS or size + len(text) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _encoder(encoder: TextEncoder) -> Callable[[list[bytes]], tuple[np.ndarray, np.ndarray]]:
    """Returns a function of texts that gives their word ids, and where each text's begin."""
    signature = [tf.TensorSpec([None], tf.string)]
    pieces = compiled(encoder.word_pieces, input_signature=signature)

    def encode(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        ids = pieces(tf.constant(texts))
        return ids.flat_values.numpy(), ids.row_splits.numpy()

    return encode
