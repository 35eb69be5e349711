"""Texts to the inputs of an encoder: word pieces, joined, cut and padded."""

import copy
import functools
from collections.abc import Collection, Sequence

import numpy as np
import tensorflow as tf
import tensorflow_text as text

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.data.tokenization.word_pieces import WordPieces
from adapter_bert_tf.errors import InputError, Unsupported
from adapter_bert_tf.sanitize import preview


class TextEncoder(tf.Module):
    """Tokenizes one or two texts and joins them as `[CLS] a [SEP] b [SEP]`, cut to a length.

    Gives the same pieces as `transformers.BertTokenizerFast`, except for special tokens written in
    a text (`[SEP]` is text here, and is split) and some rare characters; docs/bases.md lists them.

    Args:
      vocabulary: `Vocabulary`.
      max_seq_length: maximum length in word pieces, special tokens included. A longer pair is cut
        at the end of its longer text, as in adapter-bert.

    Raises:
      InputError: when `max_seq_length` is less than 5, the length of two texts of one piece.
    """

    def __init__(
        self, vocabulary: Vocabulary, max_seq_length: int, name: str | None = None
    ) -> None:
        super().__init__(name=name)
        self.max_seq_length = _checked_length(max_seq_length)
        self.word_pieces = WordPieces(vocabulary)
        special = vocabulary.tokenizer.special
        self.unknown_id = vocabulary.pieces.index(special.unknown)
        self.start_id = vocabulary.pieces.index(special.start)
        self.end_id = vocabulary.pieces.index(special.end)
        self._vocabulary = vocabulary

    def with_length(self, max_seq_length: int) -> "TextEncoder":
        """Returns a copy with another `max_seq_length`, which shares the vocabulary."""
        other = copy.copy(self)
        other.max_seq_length = _checked_length(max_seq_length)
        return other

    def __call__(self, *texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Encodes a batch.

        Args:
          *texts: one or two string tensors `[batch]`.

        Returns:
          int32 ragged `[batch, (pieces)]`: word ids and type ids.
        """
        return self.join(self.segments(*texts))

    def inputs(self, *texts: tf.Tensor | Sequence[str]) -> dict[str, tf.Tensor]:
        """Encodes a batch and pads it to its longest row.

        Args:
          *texts: one or two string tensors `[batch]`, or lists of strings.

        Returns:
          dict of int32 `[batch, seq]` `input_word_ids`, `input_mask` and `input_type_ids`.

        Raises:
          InputError: unless there are one or two lists of strings of equal length.
        """
        try:
            columns = [_strings(column) for column in texts]
        except (TypeError, ValueError) as error:
            raise InputError(f"Texts must be strings. Received: {preview(texts)}") from error
        shapes = [tuple(column.shape) for column in columns]
        if len(columns) not in (1, 2) or len(set(shapes)) > 1 or len(shapes[0]) != 1:
            raise InputError(
                "Texts must be one or two lists of strings of equal length. Received: "
                f"{len(columns)} lists with the shapes {shapes}"
            )
        return pad_inputs(*self(*columns))

    def segments(self, *texts: tf.Tensor) -> list[tf.RaggedTensor]:
        """Returns the uncut word-piece ids of each text: ragged `[batch, (pieces)]` each."""
        return [self.word_pieces(t) for t in texts]

    @property
    def pieces(self) -> tuple[str, ...]:
        """The word pieces in the order of their ids."""
        return self._vocabulary.pieces

    @property
    def mask(self) -> str:
        """The name of the mask, `[MASK]` in most vocabularies."""
        return self._vocabulary.tokenizer.special.mask

    def mask_id(self) -> int:
        """Returns the id of the mask. Raises `Unsupported` for a vocabulary without one."""
        if self.mask not in self.pieces:
            raise Unsupported(
                f"{self._vocabulary.path} has no {self.mask}, so nothing can be masked. Use a base "
                "that was pretrained as a masked-language model."
            )
        return self.pieces.index(self.mask)

    def with_masks(self, text: str) -> list[int]:
        """Returns the uncut word-piece ids of a text in which the mask's name stands for it."""
        (segments,) = self.segments(tf.constant(text.split(self.mask)))
        mask, ids = self.mask_id(), list[int]()
        for part in segments.to_list():
            ids += [*part, mask]
        return ids[:-1]

    def join(self, segments: Sequence[tf.RaggedTensor]) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Cuts and joins `segments`; returns the same as `__call__`."""
        length = self.max_seq_length - len(segments) - 1
        ids, types = text.combine_segments(
            text.RoundRobinTrimmer(length).trim(segments),
            start_of_sequence_id=self.start_id,
            end_of_segment_id=self.end_id,
        )
        return tf.cast(ids, tf.int32), tf.cast(types, tf.int32)

    def align(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Aligns word pieces with the characters of `texts`, string `[batch]`.

        Texts are normalized character by character, so every byte of the tokenizer's input belongs
        to one character of the text, and `text[start:end]` is the text of a piece.

        Returns:
          three ragged `[batch, (pieces)]`: int32 word ids, and int64 starts and ends, in Unicode
          characters. An end includes combining marks that follow.
        """
        characters, distinct, normalized = self.word_pieces.characters(texts)
        positions = characters.flat_values
        joined = tf.strings.reduce_join(
            characters.with_flat_values(tf.gather(normalized, positions)), axis=-1
        )
        ids, piece_starts, piece_ends = self.word_pieces.with_offsets(joined)

        # Indices of characters and bytes run through the whole batch until the last step.
        lengths = tf.gather(tf.strings.length(normalized), positions)
        character_of_byte = tf.repeat(tf.range(tf.size(positions, tf.int64)), lengths)
        first_byte = tf.cumsum(tf.strings.length(joined), exclusive=True)
        rows = piece_starts.value_rowids()
        first_byte = tf.cast(tf.gather(first_byte, rows), tf.int64)
        first_character = tf.gather(characters.row_starts(), rows)
        starts = tf.gather(character_of_byte, piece_starts.flat_values + first_byte)
        ends = tf.gather(character_of_byte, piece_ends.flat_values + first_byte - 1)
        is_mark = tf.gather(tf.strings.regex_full_match(distinct, r"\p{M}+"), positions)
        ends = _skip_marks(ends, is_mark, tf.gather(characters.row_limits(), rows))
        return (
            ids,
            piece_starts.with_flat_values(starts - first_character),
            piece_starts.with_flat_values(ends - first_character),
        )

    def unknown_share(self, ids: tf.RaggedTensor) -> float:
        """Returns the proportion of [UNK] among the word pieces of a ragged batch."""
        return float(tf.reduce_mean(tf.cast(ids.flat_values == self.unknown_id, tf.float32)))


@functools.lru_cache(maxsize=2)
def text_encoder(vocabulary: Vocabulary, max_seq_length: int) -> TextEncoder:
    """Returns a cached `TextEncoder`: the runs of a sweep share the traces, which take seconds."""
    return TextEncoder(vocabulary, max_seq_length)


def _strings(column: tf.Tensor | Sequence[str]) -> tf.Tensor:
    """Texts as a tensor; half of a surrogate pair, which TensorFlow refuses, is read as `?`."""
    if isinstance(column, list | tuple):
        column = [t.encode("utf-8", "replace") if isinstance(t, str) else t for t in column]
    return tf.convert_to_tensor(column, tf.string)


def _checked_length(max_seq_length: int) -> int:
    if not isinstance(max_seq_length, int | np.integer) or max_seq_length < 5:
        raise InputError(
            f"max_seq_length must be a whole number from 5. Received: {preview(max_seq_length)}"
        )
    return int(max_seq_length)


def require_equal_lengths(columns: Collection[tf.Tensor]) -> list[tf.Tensor]:
    """Checks lengths in the graph: tensorflow_text reads beyond the end of a shorter text."""
    sizes = [tf.size(column) for column in columns]
    message = "All text inputs must have the same number of rows."
    checks = [tf.debugging.assert_equal(size, sizes[0], message) for size in sizes[1:]]
    with tf.control_dependencies([check for check in checks if check is not None]):
        return [tf.identity(column) for column in columns]


def pad_inputs(
    ids: tf.RaggedTensor, types: tf.RaggedTensor, width: tf.Tensor | int | None = None
) -> dict[str, tf.Tensor]:
    """Pads ragged word ids and type ids to encoder inputs, a dict of int32 `[batch, width]`.

    The default `width` is that of the longest row, at least 1, also for an empty batch.
    """
    width = tf.maximum(ids.bounding_shape(1), 1) if width is None else width
    shape = tf.stack([-1, width])
    return {
        "input_word_ids": ids.to_tensor(shape=shape),
        "input_type_ids": types.to_tensor(shape=shape),
        "input_mask": tf.sequence_mask(ids.row_lengths(), width, tf.int32),
    }


def _skip_marks(last: tf.Tensor, is_mark: tf.Tensor, limits: tf.Tensor) -> tf.Tensor:
    """Returns the first character after each of `last`, before `limits`, that is not a mark."""
    others = tf.where(~is_mark)[:, 0]
    others = tf.concat([others, tf.shape(is_mark, tf.int64)], 0)
    following = tf.gather(others, tf.searchsorted(others, last, side="right", out_type=tf.int64))
    return tf.minimum(following, limits)
