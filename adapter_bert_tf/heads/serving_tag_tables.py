"""What several taggers decide of words and entities, as tables that a graph looks up."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.tagging.schemes import PLAIN, split_tag, to_iob2
from adapter_bert_tf.heads.tag_decoding import ARGMAX, UNLIKELY, VITERBI, TagRules, best_tags


class TagTables:
    """The rules of one tagger or of several, each with tags of its own, padded to the most.

    Args:
      configs: of adapters, with `labels` and `inputs`.
    """

    def __init__(self, configs: Sequence[Mapping[str, Any]]) -> None:
        taggers = [(list(config["labels"]), config["inputs"]) for config in configs]
        rules = [TagRules(own, i["scheme"], i["decoding"]) for own, i in taggers]
        self.width = width = max(len(own.labels) for own in rules)
        count = len(rules)
        self._is_plain = np.array([inputs["scheme"] == PLAIN for _, inputs in taggers])
        self._types = np.full([count, width], "", object)
        self._unread = np.full([count, width], UNLIKELY, np.float32)
        self._start = np.zeros([count, width], bool)
        self._between = np.zeros([count, width, width], bool)
        self._end = np.zeros([count, width], bool)
        self._inside = np.zeros([count, width], bool)
        self._begins = np.zeros([count, width + 1, width], bool)  # The last row: no tag before.
        for number, own in enumerate(rules):
            size, is_plain = len(own.labels), self._is_plain[number]
            parts = [split_tag(label) for label in own.labels]
            self._types[number, :size] = own.labels if is_plain else [kind for _, kind in parts]
            self._unread[number, :size] = own.unread()
            is_free = own.decoding == ARGMAX
            self._start[number, :size] = True if is_free else own.valid.start
            self._between[number, :size, :size] = True if is_free else own.valid.between
            self._end[number, :size] = True if is_free else own.valid.end
            self._inside[number, :size] = is_plain or [bool(prefix) for prefix, _ in parts]
            edges = [*enumerate(own.labels), (width, None)]
            for row, before in edges:
                self._begins[number, row, :size] = [
                    is_plain or _begins(before, label) for label in own.labels
                ]
        # Where all sequences are valid, the most probable one has the most probable tags.
        self._decoding = next((VITERBI for own in rules if own.decoding == VITERBI), ARGMAX)

    def best(
        self, logits: tf.Tensor, counts: tf.Tensor, which: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """See `best_tags`; `which` is int32 `[batch]`, the tagger of each sentence."""
        start, end = self._of(self._start, which), self._of(self._end, which)
        between = self._of(self._between, which)
        return best_tags(logits, counts, start, between, end, self._decoding)

    def unread(self, which: tf.Tensor) -> tf.Tensor:
        """Logits of words without pieces, float32 `[words, tags]`; `[tags]` if all are equal."""
        return self._of(self._unread, which)

    def is_plain(self, which: tf.Tensor) -> tf.Tensor:
        """Whether each word is of a tagger of plain tags, whose entities are its words."""
        return self._of(self._is_plain, which)

    def types(self, which: tf.Tensor, tags: tf.Tensor) -> tf.Tensor:
        """The type of entities, string `[entities]`, from the tag of their first word."""
        return self._of(self._types, which, tags)

    def begins(self, which: tf.Tensor, before: tf.Tensor, tags: tf.Tensor) -> tf.Tensor:
        """Whether each word begins an entity; `before` is `width` for the first word of a text."""
        return self._of(self._begins, which, before, tags)

    def inside(self, which: tf.Tensor, tags: tf.Tensor) -> tf.Tensor:
        """Whether each word is in an entity."""
        return self._of(self._inside, which, tags)

    def _of(self, table: np.ndarray, which: tf.Tensor, *places: tf.Tensor) -> tf.Tensor:
        """The rows of a table; of one tagger it is the same for all, and has no first axis."""
        values = table.tolist() if table.dtype == object else table
        if len(table) > 1:
            return tf.gather_nd(tf.constant(values), tf.stack([which, *places], -1))
        only = tf.constant(values[0])
        return tf.gather_nd(only, tf.stack(places, -1)) if places else only


def _begins(before: str | None, label: str) -> bool:
    """Whether a tag after another one begins an entity."""
    tags = (label,) if before is None else (before, label)
    return split_tag(to_iob2(tags, "IOB2")[-1])[0] == "B"
