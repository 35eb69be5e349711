"""Windows of word pieces over sentences that are given as words, in TensorFlow ops.

The first piece of a word stands for it. A sentence of more pieces than fit is split into windows
that overlap, and each word is answered by one window: the one with the most context around it. A
word without pieces, such as U+FE0F alone, is in no window; whoever decodes gives it `O`, or the
first label where tags are plain.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.tagging.lazy_tracing import LazilyTraced
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class Windows:
    """The windows of many sentences, in order; in a graph all fields are tensors."""

    ids: tf.RaggedTensor  # int32 `[windows, (pieces)]`, with [CLS] and [SEP].
    sentence: Any  # int32 `[windows]`, number of its sentence.
    firsts: tf.RaggedTensor  # int32 `[windows, (words)]`, first piece of each word it answers.
    words: tf.RaggedTensor  # int32 `[windows, (words)]`, number of that word in its sentence.
    lengths: Any  # int64 `[windows]`, in pieces.

    def __len__(self) -> int:
        return len(self.lengths)


def window_steps(max_seq_length: int, stride: int) -> tuple[int, int]:
    """Returns the pieces of a full window without [CLS] and [SEP], and those from one to the next.

    Two neighbouring windows share `stride` pieces, and at most half of a window. Raises
    `InputError` for a negative stride.
    """
    if stride < 0:
        raise InputError(
            f"stride is the number of word pieces that two windows share. Received: {stride}",
            "stride",
        )
    room = max_seq_length - 2
    return room, room - min(stride, room // 2)


def make_windows(
    sentences: Iterable[Sequence[str]], encoder: TextEncoder, max_seq_length: int, stride: int
) -> Windows:
    """Makes the windows of sentences, lists of words.

    Args:
      sentences: words.
      encoder: of the base's vocabulary; its own length is not used.
      max_seq_length: the most pieces of a window, with [CLS] and [SEP].
      stride: how many pieces two neighbouring windows share, at most half of a window.
    """
    make = _window_maker(encoder, max_seq_length, stride)
    ids, sentence, firsts, words, lengths = make(ragged_words(sentences))
    return Windows(ids, sentence.numpy(), firsts, words, lengths.numpy())


@functools.lru_cache(maxsize=4)
def _window_maker(encoder: TextEncoder, max_seq_length: int, stride: int) -> LazilyTraced:
    def make(words: tf.RaggedTensor) -> tuple[Any, ...]:
        made = windows_in_graph(words, encoder, max_seq_length, stride)
        return made.ids, made.sentence, made.firsts, made.words, made.lengths

    return LazilyTraced(make, tf.RaggedTensorSpec([None, None], tf.string))


def ragged_words(sentences: Iterable[Sequence[str]]) -> tf.RaggedTensor:
    """Returns lists of words as string ragged `[sentences, (words)]`."""
    rows = [[word.encode("utf-8", "replace") for word in words] for words in sentences]
    flat = tf.constant([word for row in rows for word in row], tf.string)
    return tf.RaggedTensor.from_row_lengths(flat, np.array([len(row) for row in rows], np.int64))


def windows_in_graph(
    words: tf.RaggedTensor, encoder: TextEncoder, max_seq_length: int, stride: int
) -> Windows:
    """Makes the windows of string ragged `[sentences, (words)]`; see `make_windows`."""
    room, step = window_steps(max_seq_length, stride)
    distinct, which = tf.unique(words.flat_values, out_idx=tf.int64)
    pieces = tf.gather(encoder.word_pieces(distinct), which)  # `[all words, (pieces)]`
    begins = tf.gather(pieces.row_splits, words.row_splits[:-1])  # Of each sentence.
    lengths = tf.gather(pieces.row_splits, words.row_splits[1:]) - begins

    # Windows of pieces, from `begin` to `end` in their sentence.
    counts = tf.where(lengths > 0, 1 + (tf.maximum(lengths - room, 0) + step - 1) // step, 0)
    sentence = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)
    begin = tf.ragged.range(counts).flat_values * step
    end = tf.minimum(begin + room, tf.gather(lengths, sentence))

    number, first, window = _place_words(words, pieces, begins, counts, begin, end, room, step)
    # A window inside of one long word answers nothing.
    is_used = tf.math.unsorted_segment_max(tf.ones_like(window), window, tf.size(begin)) > 0
    window = tf.gather(tf.cumsum(tf.cast(is_used, tf.int64), exclusive=True), window)
    sentence, begin, end = (tf.boolean_mask(x, is_used) for x in (sentence, begin, end))

    def by_window(values: tf.Tensor) -> tf.RaggedTensor:
        return tf.RaggedTensor.from_value_rowids(
            tf.cast(values, tf.int32), window, nrows=tf.size(sentence, tf.int64), validate=False
        )

    offset = tf.gather(begins, sentence)
    inside = tf.ragged.range(offset + begin, offset + end)
    inside = inside.with_flat_values(tf.gather(pieces.flat_values, inside.flat_values))
    edge = tf.fill([tf.size(sentence), 1], 0)
    ids = tf.concat([edge + encoder.start_id, inside, edge + encoder.end_id], 1)
    return Windows(
        ids=ids,
        sentence=tf.cast(sentence, tf.int32),
        firsts=by_window(first - tf.gather(begin, window) + 1),
        words=by_window(number),
        lengths=ids.row_lengths(),
    )


def _place_words(
    words: tf.RaggedTensor,
    pieces: tf.RaggedTensor,
    begins: tf.Tensor,
    counts: tf.Tensor,
    begin: tf.Tensor,
    end: tf.Tensor,
    room: int,
    step: int,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the words with pieces in the order of the windows that answer them.

    Returns:
      three int64 `[words]`: number of the word and its first piece, both in the sentence, and the
      window.
    """
    has_pieces = pieces.row_lengths() > 0
    of_word = tf.boolean_mask(words.value_rowids(), has_pieces)
    number = tf.boolean_mask(tf.ragged.range(words.row_lengths()).flat_values, has_pieces)
    first = tf.boolean_mask(pieces.row_starts(), has_pieces) - tf.gather(begins, of_word)
    last = first + tf.boolean_mask(pieces.row_lengths(), has_pieces) - 1
    offset = tf.gather(tf.cumsum(counts, exclusive=True), of_word)
    lowest = tf.maximum(first - room + step, 0) // step
    highest = tf.minimum(first // step, tf.gather(counts, of_word) - 1)
    candidates = tf.ragged.range(offset + lowest, offset + highest + 1)
    window = _most_context(candidates, first, last, begin, end)
    order = tf.argsort(window, stable=True)
    return tf.gather(number, order), tf.gather(first, order), tf.gather(window, order)


def _most_context(
    candidates: tf.RaggedTensor, first: tf.Tensor, last: tf.Tensor, begin: tf.Tensor, end: tf.Tensor
) -> tf.Tensor:
    """Returns the window with the most context for each word, the first of equally good ones.

    The context is the smaller of the numbers of pieces before and after the word; it is negative
    where the word is cut.

    Args:
      candidates: int64 ragged `[words, (windows)]`, those with the first piece of the word.
      first: int64 `[words]`, first piece of each word in its sentence.
      last: int64 `[words]`, last piece.
      begin: int64 `[windows]`, first piece of each window in its sentence.
      end: int64 `[windows]`, the piece after its last one.
    """
    window, word = candidates.flat_values, candidates.value_rowids()
    before = tf.gather(first, word) - tf.gather(begin, window)
    after = tf.gather(end, window) - 1 - tf.gather(last, word)
    context = tf.minimum(before, after)
    words = tf.size(first, tf.int64)
    best = tf.gather(tf.math.unsorted_segment_max(context, word, words), word)
    rivals = tf.where(context == best, window, tf.int64.max)
    return tf.math.unsorted_segment_min(rivals, word, words)


def by_sentence(
    windows: Windows, values: tf.Tensor, words: tf.RaggedTensor, default: tf.Tensor
) -> tf.RaggedTensor:
    """Returns values of the answered words in the order of the sentences.

    Args:
      windows: of the sentences.
      values: `[answered words, ...]`, in the order of `windows.words.flat_values`.
      words: ragged `[sentences, (words)]`, of which only the row splits are used.
      default: `[...]`, the value of words without pieces.

    Returns:
      ragged `[sentences, (words), ...]`.
    """
    sentence = tf.gather(windows.sentence, windows.words.value_rowids())
    place = tf.gather(words.row_starts(), sentence) + tf.cast(windows.words.flat_values, tf.int64)
    count = tf.size(words.flat_values, tf.int64)
    flat = tf.repeat(tf.convert_to_tensor(default, values.dtype)[tf.newaxis], count, axis=0)
    return words.with_flat_values(tf.tensor_scatter_nd_update(flat, place[:, tf.newaxis], values))
