"""Splits texts into the word pieces of a base, with the tokens that were added to it."""

import re
from collections.abc import Iterable

import tensorflow as tf
import tensorflow_text as text

from adapter_bert_tf.base.tokenizer_settings import AddedToken, TokenizerSettings
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.data.tokenization.words import normalize, split_words, without_nul

MARK = "\ue000"  # Begins the word of an added token. Normalization removes it from texts.
BYTES = 4  # The most of a character in UTF-8.


class WordPieces(tf.Module):
    """From texts to word pieces: words first, then the longest pieces of each.

    Args:
      vocabulary: `Vocabulary`. Its added tokens are pieces wherever they occur. Other special
        tokens in a text are text: `[SEP]` is split.
    """

    def __init__(self, vocabulary: Vocabulary, name: str | None = None) -> None:
        super().__init__(name=name)
        self.settings = vocabulary.tokenizer
        added = self.settings.added
        with tf.init_scope():  # The texts of added tokens are constants of the graph.
            forms = {token.content: _normalized_form(token, self.settings) for token in added}
        self._limit = self.settings.longest_word * BYTES
        self._model = text.FastWordpieceTokenizer(
            vocab=[MARK + forms[p] if p in forms else p for p in vocabulary.pieces],
            max_bytes_per_word=self._limit,
            token_out_type=tf.int32,
            unknown_token=self.settings.special.unknown,
            no_pretokenization=True,
        )
        self._before_normalization = _alternatives(t.content for t in added if not t.normalized)
        self._added = _alternatives(forms.values())

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """The word pieces of string `[batch]`: int32 ids, ragged `[batch, (pieces)]`."""
        return self.with_offsets(self._normalize(texts))[0]

    def characters(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor]:
        """Splits texts into characters and normalizes these.

        Args:
          texts: string `[batch]`.

        Returns:
          int32 ragged `[batch, (characters)]`, rows in the two tables that follow: string `[rows]`
          characters and normalized characters. These joined are a normalized text.
        """
        if not self._before_normalization:
            characters = tf.strings.unicode_split(texts, "UTF-8")
            distinct, rows = tf.unique(characters.flat_values)
            return characters.with_flat_values(rows), distinct, normalize(distinct, self.settings)
        parts, is_token = self._split_at_tokens(texts)
        by_part = tf.strings.unicode_split(parts, "UTF-8")
        distinct, rows = tf.unique(by_part.flat_values)
        # The second half of the tables has the characters of added tokens, which stay.
        is_kept = tf.gather(is_token, by_part.values.value_rowids())
        rows = tf.where(is_kept, rows + tf.size(distinct), rows)
        normalized = tf.concat([normalize(distinct, self.settings), distinct], 0)
        characters = by_part.with_flat_values(rows).merge_dims(1, 2)
        return characters, tf.concat([distinct, distinct], 0), normalized

    def with_offsets(
        self, texts: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """The word pieces of normalized texts.

        Args:
          texts: string `[batch]`.

        Returns:
          three ragged `[batch, (pieces)]`: int32 ids, and int64 starts and ends in bytes.
        """
        words, word_starts, _ = split_words(texts, self.settings, self._added)
        flat = words.flat_values
        lengths = tf.strings.length(flat)
        ids, starts, ends = self._model.tokenize_with_offsets(self._checked_words(flat))
        # A word that was replaced by a longer one is a single piece, as long as the word.
        rows = ids.value_rowids()
        first = tf.gather(word_starts.flat_values, rows)
        ends = tf.minimum(ends.flat_values, tf.cast(tf.gather(lengths, rows), tf.int64))
        parts = (ids.flat_values, starts.flat_values + first, ends + first)
        batch = tf.shape(texts, tf.int64)[0]
        splits = tf.gather(ids.row_splits, tf.reshape(words.row_splits, [batch + 1]))
        of_ids, of_starts, of_ends = (tf.RaggedTensor.from_row_splits(p, splits) for p in parts)
        return of_ids, of_starts, of_ends

    def _checked_words(self, words: tf.Tensor) -> tf.Tensor:
        """Words; those too long become one that is unknown, and added tokens get their mark."""
        is_long = tf.strings.length(words, unit="UTF8_CHAR") > self.settings.longest_word
        words = tf.where(is_long, "a" * (self._limit + 1), words)
        if not self._added:
            return words
        return tf.where(tf.strings.regex_full_match(words, self._added), MARK + words, words)

    def _normalize(self, texts: tf.Tensor) -> tf.Tensor:
        if not self._before_normalization:
            return normalize(texts, self.settings)
        parts, is_token = self._split_at_tokens(texts)
        flat = tf.where(is_token, parts.flat_values, normalize(parts.flat_values, self.settings))
        return tf.strings.reduce_join(parts.with_flat_values(flat), axis=-1)

    def _split_at_tokens(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Added tokens and the parts between them, and whether each of all parts is a token."""
        pattern = self._before_normalization
        parts, _, _ = text.regex_split_with_offsets(without_nul(texts), pattern, pattern)
        return parts, tf.strings.regex_full_match(parts.flat_values, pattern)


def _normalized_form(token: AddedToken, settings: TokenizerSettings) -> str:
    """The text of a token in normalized texts."""
    if not token.normalized:
        return token.content
    normalized: bytes = normalize(tf.constant([token.content]), settings).numpy()[0]
    return normalized.decode()


def _alternatives(texts: Iterable[str]) -> str:
    """A regular expression of these texts, the longest first; empty without texts."""
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
