"""Splits raw text into the words that are tagged, in TensorFlow ops."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import tensorflow as tf

from adapter_bert_tf.base.tokenizer_settings import TokenizerSettings
from adapter_bert_tf.data.tagging.lazy_tracing import LazilyTraced
from adapter_bert_tf.data.tokenization import words as basic

BYTES_AT_ONCE = 1 << 20


def split_texts(
    texts: Sequence[str], settings: TokenizerSettings
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Splits a list of texts; see `split_words`. Half of a surrogate pair is read as `?`."""
    split = _splitter(settings)
    # A text takes a hundred times its bytes of memory while it is split.
    parts = [split(tf.constant(part, tf.string)) for part in _in_parts(texts)]
    if len(parts) == 1:
        return parts[0]
    words, starts, ends = (tf.concat(column, 0) for column in zip(*parts, strict=True))
    return words, starts, ends


def _in_parts(texts: Sequence[str]) -> list[list[bytes]]:
    """Encoded texts in lists of some `BYTES_AT_ONCE` bytes; at least one list."""
    parts, size = [list[bytes]()], 0
    for text in texts:
        encoded = text.encode("utf-8", "replace")
        size += len(encoded)
        if size > BYTES_AT_ONCE and parts[-1]:
            parts.append([])
            size = len(encoded)
        parts[-1].append(encoded)
    return parts


@functools.lru_cache(maxsize=4)
def _splitter(settings: TokenizerSettings) -> LazilyTraced:
    return LazilyTraced(
        functools.partial(split_words, settings=settings), tf.TensorSpec([None], tf.string)
    )


def split_words(
    texts: tf.Tensor, settings: TokenizerSettings | None = None
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Splits texts at white space, and around each character of punctuation, which is a word.

    White space and punctuation are those of BERT's basic tokenizer, so a word's pieces are those
    that it has in the whole text. By default each ideograph is a word, too.

    Args:
      texts: string `[batch]`.
      settings: of the base's tokenizer; None: the usual ones.

    Returns:
      three ragged `[batch, (words)]`: strings, and int64 starts and ends in Unicode characters of
      the text.
    """
    settings = settings or TokenizerSettings()
    _, starts, ends = basic.split_words(basic.without_nul(texts), settings)
    # Not slices of the texts, which would copy a whole text for each of its words.
    text_bytes = tf.strings.bytes_split(texts)
    first = tf.gather(text_bytes.row_starts(), starts.value_rowids())
    inside = tf.ragged.range(first + starts.flat_values, first + ends.flat_values)
    parts = inside.with_flat_values(tf.gather(text_bytes.flat_values, inside.flat_values))
    found = starts.with_flat_values(tf.strings.reduce_join(parts, axis=-1))
    # Characters and bytes are numbered through the whole batch.
    characters, begins = tf.strings.unicode_split_with_offsets(texts, "UTF-8")
    text_begins = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)
    begins = begins.flat_values + tf.gather(text_begins, characters.value_rowids())

    def in_characters(places: tf.RaggedTensor) -> tf.RaggedTensor:
        rows = places.value_rowids()
        places = places.with_flat_values(tf.cast(places.flat_values, tf.int64))
        of_batch = places.flat_values + tf.gather(text_begins, rows)
        numbers = tf.searchsorted(begins, of_batch, out_type=tf.int64)
        return places.with_flat_values(numbers - tf.gather(characters.row_starts(), rows))

    return found, in_characters(starts), in_characters(ends)
