"""Tagging in the graph: words, windows, the best valid tags, and entities of raw texts.

The same windows and the same choice as in a `Predictor`, as tensors.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.tagging.schemes import PLAIN, split_tag, to_iob2
from adapter_bert_tf.data.tagging.windows import Windows, by_sentence, windows_in_graph
from adapter_bert_tf.data.tagging.words import split_words
from adapter_bert_tf.heads.serving_texts import Pieces, Run, Tensors
from adapter_bert_tf.heads.tag_decoding import TagRules

WINDOWS_AT_ONCE = 16  # Of a pass of the encoder, so that memory does not grow with the text.
TEXTS_AT_ONCE = 64  # Of a decoding, padded to the longest.
SPLITS = "row_splits"  # The output that says which flat values belong to which text.


class TextTagger(tf.Module):
    """Entities of raw texts, or plain tags of their words.

    `run` maps encoder inputs to logits `[windows, seq, tags]`; `labels` and `inputs` are those of
    an adapter. Taggers with the same `pieces` share the graph of words and windows.
    """

    def __init__(
        self, run: Run, labels: Sequence[str], inputs: Mapping[str, Any], pieces: Pieces
    ) -> None:
        super().__init__()
        self.run = run
        self.labels = list(labels)
        self.settings = dict(inputs)
        self.pieces = pieces

    def __call__(self, text: tf.Tensor) -> Tensors:
        """Tags texts, string `[batch]`.

        Returns a dict of flat values, `[entities]` of all texts in order: `entity_text` and
        `entity_type`, strings; int64 `entity_start` and `entity_end`, in characters of the text;
        `entity_score`, the least probability of the entity's words; and int64 `row_splits`
        `[batch + 1]`: those of text i are `[row_splits[i]:row_splits[i + 1]]`. Plain tags have
        `word_text`, `word_tag`, `word_start`, `word_end` and `word_score`, `[words]`; the
        score of a word without pieces is NaN.
        """
        key = ("windows", self.settings["max_seq_length"], self.settings["stride"])
        words, starts, ends, *fields = self.pieces.shared(key, self._windows, text)
        tags, scores = self._tag(words, Windows(*fields))
        row = words.value_rowids()
        starts, ends = starts.flat_values, ends.flat_values
        if self.settings["scheme"] == PLAIN:
            values = {
                "word_text": words.flat_values,
                "word_tag": tf.gather(tf.constant(self.labels), tags),
                "word_start": starts,
                "word_end": ends,
                "word_score": scores,
            }
            return values | {SPLITS: tf.cast(words.row_splits, tf.int64)}
        first, last, scores = self._entities(tags, scores, row)
        row, starts, ends = tf.gather(row, first), tf.gather(starts, first), tf.gather(ends, last)
        types = [split_tag(label)[1] for label in self.labels]
        return {
            "entity_text": _slices(text, row, starts, ends),
            "entity_type": tf.gather(tf.constant(types), tf.gather(tags, first)),
            "entity_start": starts,
            "entity_end": ends,
            "entity_score": scores,
            SPLITS: tf.searchsorted(row, tf.range(tf.size(text, tf.int64) + 1), out_type=tf.int64),
        }

    def _windows(self, text: tf.Tensor) -> tuple[Any, ...]:
        """Words, their starts and ends, and the fields of `Windows`."""
        encoder = self.pieces.encoder
        words, starts, ends = split_words(text, encoder.word_pieces.settings)
        length, stride = self.settings["max_seq_length"], self.settings["stride"]
        made = windows_in_graph(words, encoder, length, stride)
        return words, starts, ends, *(getattr(made, f.name) for f in dataclasses.fields(made))

    def _tag(self, words: tf.RaggedTensor, windows: Windows) -> tuple[tf.Tensor, tf.Tensor]:
        """The number of each word's tag, int32 `[words]`, and its probability."""
        inputs = _inputs(windows.ids)
        width = len(self.labels)

        def window_logits(rows: slice) -> list[tf.Tensor]:
            logits = self.run({name: value[rows] for name, value in inputs.items()})
            firsts = windows.firsts[rows]
            positions = tf.stack([tf.cast(firsts.value_rowids(), tf.int32), firsts.flat_values], 1)
            return [tf.gather_nd(logits, positions)]

        (logits,) = _in_parts(
            tf.size(windows.lengths), WINDOWS_AT_ONCE, window_logits, [tf.zeros([0, width])]
        )
        rules = TagRules(self.labels, self.settings["scheme"], self.settings["decoding"])
        by_word = by_sentence(windows, logits, words, tf.constant(rules.unread()))
        read = by_sentence(windows, tf.ones_like(logits[:, 0], tf.bool), words, tf.constant(False))

        def decoded(rows: slice) -> list[tf.Tensor]:
            part = by_word[rows]
            counts = tf.cast(part.row_lengths(), tf.int32)
            padded = part.to_tensor(shape=[None, None, width])
            tags, scores = rules.best(padded, counts)
            is_word = tf.sequence_mask(counts, tf.shape(padded)[1])
            return [tf.boolean_mask(tags, is_word), tf.boolean_mask(scores, is_word)]

        none = [tf.zeros([0], tf.int32), tf.zeros([0])]
        tags, scores = _in_parts(tf.cast(words.nrows(), tf.int32), TEXTS_AT_ONCE, decoded, none)
        if self.settings["scheme"] == PLAIN:
            scores = tf.where(read.flat_values, scores, np.nan)
        return tags, scores

    def _entities(
        self, tags: tf.Tensor, scores: tf.Tensor, row: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """First and last word of each entity, int64 `[entities]`, and its score."""
        edge = len(self.labels)  # What stands before the first word of a text.
        before = tf.concat([[edge], tags[:-1]], 0)[: tf.size(tags)]
        is_first = row != tf.concat([[-1], row[:-1]], 0)[: tf.size(row)]
        pairs = tf.stack([tf.where(is_first, edge, before), tags], 1)
        table = [
            [_begins(*one, tag) for tag in self.labels]
            for one in (*zip(self.labels, strict=True), ())
        ]
        begins = tf.gather_nd(tf.constant(np.array(table)), pairs)
        is_inside = tf.gather(tf.constant([bool(split_tag(t)[0]) for t in self.labels]), tags)
        word = tf.where(is_inside)[:, 0]
        entity = tf.gather(tf.cumsum(tf.cast(begins, tf.int32)) - 1, word)
        first = tf.where(begins)[:, 0]
        count = tf.size(first)
        last = tf.math.unsorted_segment_max(word, entity, count)
        return first, last, tf.math.unsorted_segment_min(tf.gather(scores, word), entity, count)


def _begins(*tags: str) -> bool:
    """Whether the last of the tags begins an entity."""
    return split_tag(to_iob2(tags, "IOB2")[-1])[0] == "B"


def _inputs(ids: tf.RaggedTensor) -> Tensors:
    width = tf.maximum(ids.bounding_shape(1), 1)
    padded = ids.to_tensor(shape=tf.stack([-1, width]))
    return {
        "input_word_ids": padded,
        "input_mask": tf.sequence_mask(ids.row_lengths(), width, tf.int32),
        "input_type_ids": tf.zeros_like(padded),
    }


def _in_parts(
    count: tf.Tensor, size: int, run: Callable[[slice], list[tf.Tensor]], empty: list[tf.Tensor]
) -> list[tf.Tensor]:
    """The results of `run` for parts of `size` rows, one after the other, joined to `empty`."""
    parts = (tf.maximum(count, 1) + size - 1) // size

    def step(part: tf.Tensor, *done: tf.Tensor) -> tuple[tf.Tensor, ...]:
        made = run(slice(part * size, (part + 1) * size))
        return part + 1, *(tf.concat(pair, 0) for pair in zip(done, made, strict=True))

    shapes = [tf.TensorShape([None, *value.shape[1:]]) for value in empty]
    _, *joined = tf.while_loop(
        lambda part, *_: part < parts,
        step,
        (0, *empty),
        (tf.TensorShape([]), *shapes),
        parallel_iterations=1,
    )
    return joined


def _slices(text: tf.Tensor, row: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    """`text[row][start:end]` in characters; copies no whole text for a slice of it."""
    characters = tf.strings.unicode_split(text, "UTF-8")
    begin = tf.gather(characters.row_starts(), row)
    inside = tf.ragged.range(begin + start, begin + end)
    slices = inside.with_flat_values(tf.gather(characters.flat_values, inside.flat_values))
    return tf.strings.reduce_join(slices, axis=-1)
