"""Tagging in the graph: words, windows, the best valid tags, and entities of raw texts.

The same windows and the same choice as in a `Predictor`, as tensors.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.tagging.schemes import PLAIN
from adapter_bert_tf.data.tagging.windows import Windows, by_sentence, windows_in_graph
from adapter_bert_tf.data.tagging.words import split_words
from adapter_bert_tf.heads.serving_tag_tables import TagTables
from adapter_bert_tf.heads.serving_texts import Config, Pieces, RowAnswers, RunRows, Tensors

WINDOWS_AT_ONCE = 16  # Of a pass of the encoder, so that memory does not grow with the text.
TEXTS_AT_ONCE = 64  # Of a decoding, padded to the longest.
SPLITS = "row_splits"  # The output that says which flat values belong to which text.
FLAT = ("entity_", "word_")  # Names of flat values begin with one of these.


class TextTagger(tf.Module):
    """Entities of raw texts, each by one of several taggers that read the same windows.

    `run` maps encoder inputs and each row's number in `configs` to logits `[windows, seq, tags]`.
    Taggers with the same `pieces` share the graph of words and windows.
    """

    def __init__(self, run: RunRows, configs: Sequence[Config], pieces: Pieces) -> None:
        super().__init__()
        self.run = run
        self.settings = dict(configs[0]["inputs"])
        self.labels = list(configs[0]["labels"])
        self.pieces = pieces
        self.tables = TagTables(configs)

    def __call__(self, text: tf.Tensor) -> Tensors:
        """Tags texts, string `[batch]`, by the first tagger.

        Returns a dict of flat values, `[entities]` of all texts in order: `entity_text` and
        `entity_type`, strings; int64 `entity_start` and `entity_end`, in characters of the text;
        `entity_score`, the least probability of the entity's words; and int64 `row_splits`
        `[batch + 1]`: those of text i are `[row_splits[i]:row_splits[i + 1]]`. Plain tags have
        `word_text`, `word_tag`, `word_start`, `word_end` and `word_score`, `[words]`; the
        score of a word without pieces is NaN.
        """
        which = tf.zeros_like(text, tf.int32)
        if self.settings["scheme"] != PLAIN:
            row, found = self.entities(text, which)
            return found | {SPLITS: splits_of(row, tf.size(text))}
        words, starts, ends, windows = self._read(text)
        tags, scores, read = self._tag(words, windows, which)
        return {
            "word_text": words.flat_values,
            "word_tag": tf.gather(tf.constant(self.labels), tags),
            "word_start": starts,
            "word_end": ends,
            "word_score": tf.where(read, scores, np.nan),
            SPLITS: tf.cast(words.row_splits, tf.int64),
        }

    def entities(self, text: tf.Tensor, which: tf.Tensor) -> tuple[tf.Tensor, Tensors]:
        """The row of each entity, int64, and its values; as in a call, by the taggers `which`.

        Each word of a tagger of plain tags is an entity, whose type is the tag; without pieces its
        score is 0.
        """
        words, starts, ends, windows = self._read(text)
        tags, scores, read = self._tag(words, windows, which)
        row = words.value_rowids()
        of_word = tf.gather(which, row)
        scores = tf.where(read | ~self.tables.is_plain(of_word), scores, 0.0)
        first, last, scores = self._entities(tags, scores, row, of_word)
        row, starts, ends = tf.gather(row, first), tf.gather(starts, first), tf.gather(ends, last)
        return row, {
            "entity_text": _slices(text, row, starts, ends),
            "entity_type": self.tables.types(tf.gather(of_word, first), tf.gather(tags, first)),
            "entity_start": starts,
            "entity_end": ends,
            "entity_score": scores,
        }

    def _read(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor, Windows]:
        """The words, flat starts and ends of them, and windows."""
        key = ("windows", self.settings["max_seq_length"], self.settings["stride"])
        words, starts, ends, *fields = self.pieces.shared(key, self._windows, text)
        return words, starts.flat_values, ends.flat_values, Windows(*fields)

    def _windows(self, text: tf.Tensor) -> tuple[Any, ...]:
        """Words, their starts and ends, and the fields of `Windows`."""
        encoder = self.pieces.encoder
        words, starts, ends = split_words(text, encoder.word_pieces.settings)
        length, stride = self.settings["max_seq_length"], self.settings["stride"]
        made = windows_in_graph(words, encoder, length, stride)
        return words, starts, ends, *(getattr(made, f.name) for f in dataclasses.fields(made))

    def _tag(
        self, words: tf.RaggedTensor, windows: Windows, which: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The number of each word's tag, int32 `[words]`, its probability, and if it has pieces."""
        inputs, width = _inputs(windows.ids), self.tables.width
        of_window = tf.gather(which, windows.sentence)

        def window_logits(rows: slice) -> list[tf.Tensor]:
            part = {name: value[rows] for name, value in inputs.items()}
            logits = self.run(part, of_window[rows])[..., :width]
            firsts = windows.firsts[rows]
            positions = tf.stack([tf.cast(firsts.value_rowids(), tf.int32), firsts.flat_values], 1)
            return [tf.gather_nd(logits, positions)]

        (logits,) = _in_parts(
            tf.size(windows.lengths), WINDOWS_AT_ONCE, window_logits, [tf.zeros([0, width])]
        )
        read = by_sentence(windows, tf.ones_like(logits[:, 0], tf.bool), words, tf.constant(False))
        read = read.flat_values
        by_word = by_sentence(windows, logits, words, tf.zeros([width]))
        unread = self.tables.unread(tf.gather(which, words.value_rowids()))
        by_word = by_word.with_flat_values(
            tf.where(read[:, tf.newaxis], by_word.flat_values, unread)
        )

        def decoded(rows: slice) -> list[tf.Tensor]:
            part = by_word[rows]
            counts = tf.cast(part.row_lengths(), tf.int32)
            padded = part.to_tensor(shape=[None, None, width])
            tags, scores = self.tables.best(padded, counts, which[rows])
            is_word = tf.sequence_mask(counts, tf.shape(padded)[1])
            return [tf.boolean_mask(tags, is_word), tf.boolean_mask(scores, is_word)]

        none = [tf.zeros([0], tf.int32), tf.zeros([0])]
        tags, scores = _in_parts(tf.cast(words.nrows(), tf.int32), TEXTS_AT_ONCE, decoded, none)
        return tags, scores, read

    def _entities(
        self, tags: tf.Tensor, scores: tf.Tensor, row: tf.Tensor, which: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """First and last word of each entity, int64 `[entities]`, and its score."""
        edge = self.tables.width  # What stands before the first word of a text.
        before = tf.concat([[edge], tags[:-1]], 0)[: tf.size(tags)]
        is_first = row != tf.concat([[-1], row[:-1]], 0)[: tf.size(row)]
        begins = self.tables.begins(which, tf.where(is_first, edge, before), tags)
        word = tf.where(self.tables.inside(which, tags))[:, 0]
        entity = tf.gather(tf.cumsum(tf.cast(begins, tf.int32)) - 1, word)
        first = tf.where(begins)[:, 0]
        count = tf.size(first)
        last = tf.math.unsorted_segment_max(word, entity, count)
        return first, last, tf.math.unsorted_segment_min(tf.gather(scores, word), entity, count)


class TagRows(RowAnswers):
    """Taggers in one batch, each row with its own; see `TextTagger.entities`.

    Args:
      run: as in `TextTagger`.
      configs: of adapters.
      pieces: of the base's vocabulary.
    """

    def __init__(self, run: RunRows, configs: Sequence[Config], pieces: Pieces) -> None:
        ways = [(c["inputs"]["max_seq_length"], c["inputs"]["stride"]) for c in configs]
        self._way_of = [sorted(set(ways)).index(way) for way in ways]
        self._taggers, self._place_of = [], [0] * len(configs)
        for way in sorted(set(self._way_of)):
            numbers = [number for number, own in enumerate(self._way_of) if own == way]
            for place, number in enumerate(numbers):
                self._place_of[number] = place
            own_run = _numbered(run, numbers)
            self._taggers.append(TextTagger(own_run, [configs[n] for n in numbers], pieces))

    def __call__(self, which: tf.Tensor, *texts: tf.Tensor) -> Tensors:
        """Entities of texts, string `[batch]`, as `TextTagger` returns them."""
        (text,) = texts
        rows, parts = [], []
        for way, tagger in enumerate(self._taggers):
            own = tf.where(tf.gather(tf.constant(self._way_of), which) == way)[:, 0]
            places = tf.gather(tf.constant(self._place_of), tf.gather(which, own))
            row, found = tagger.entities(tf.gather(text, own), places)
            rows.append(tf.gather(own, row))
            parts.append(found)
        order = tf.argsort(tf.concat(rows, 0), stable=True)
        values = {n: tf.gather(tf.concat([part[n] for part in parts], 0), order) for n in parts[0]}
        row = tf.gather(tf.concat(rows, 0), order)
        return values | {SPLITS: splits_of(row, tf.size(text))}

    def spread(self, answer: Tensors, rows: tf.Tensor, batch: tf.Tensor) -> Tensors:
        counts = answer[SPLITS][1:] - answer[SPLITS][:-1]
        every = tf.scatter_nd(rows[:, tf.newaxis], counts, tf.cast(batch, tf.int64)[tf.newaxis])
        return answer | {SPLITS: tf.concat([[0], tf.cumsum(every)], 0)}


def splits_of(row: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
    """Where the values of each of `batch` rows begin, int64, from the sorted row of each value."""
    return tf.searchsorted(row, tf.range(tf.cast(batch, tf.int64) + 1), out_type=tf.int64)


def ragged_values(answer: Tensors) -> dict[str, Any]:
    """The flat values of an answer as ragged tensors, without the beginning of their names."""
    values = dict(answer)
    splits = values.pop(SPLITS)
    flat = [name for name in values if name.startswith(FLAT)]
    return {
        name.partition("_")[2]: tf.RaggedTensor.from_row_splits(values.pop(name), splits)
        for name in flat
    } | values


def _numbered(run: RunRows, numbers: Sequence[int]) -> RunRows:
    """The same function for those taggers, numbered from 0."""
    return lambda inputs, which: run(inputs, tf.gather(tf.constant(numbers), which))


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
