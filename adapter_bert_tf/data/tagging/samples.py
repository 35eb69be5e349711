"""Scores of thousands of samples of the same tagged sentences, for intervals."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from adapter_bert_tf.data.tagging.schemes import entities
from adapter_bert_tf.tasks.entity_errors import rates
from adapter_bert_tf.tasks.tag_metrics import Tags, strict_entities


class TagSamples:
    """Counts of each sentence, from which follows what `tag_metrics.evaluate` says of a sample.

    Args:
      gold: expected tags of each sentence, IOB2 or plain.
      predicted: predicted tags.
    """

    def __init__(self, gold: Tags, predicted: Tags) -> None:
        self._gold, self._predicted = gold, predicted

    def score(self, metric: str, rows: np.ndarray | None = None) -> float:
        """Returns a metric of sentences together; `rows` are their numbers, None for all."""
        count = len(self._gold)
        times = np.ones(count, int) if rows is None else np.bincount(rows, minlength=count)
        if metric == "accuracy":
            return float(times @ self._right / max(times @ self._lengths, 1))
        if metric == "macro_f1":
            return self._macro_f1(times)
        counts = self._strict if metric == "strict_f1" else self._entities
        return rates(*(times @ counts).tolist())[metric.removeprefix("strict_")]

    def _macro_f1(self, times: np.ndarray) -> float:
        """The mean F1 of the tags that the sentences have or are given."""
        gold, predicted = self._numbers
        by_word = times.repeat(self._lengths)
        size = 1 + max(gold.max(initial=0), predicted.max(initial=0))
        both = np.bincount(gold, by_word, size) + np.bincount(predicted, by_word, size)
        is_right = gold == predicted
        found = np.bincount(gold[is_right], by_word[is_right], size)
        is_there = both > 0
        return float((2 * found[is_there] / both[is_there]).mean()) if is_there.any() else 0.0

    @functools.cached_property
    def _lengths(self) -> np.ndarray:
        return np.array([len(tags) for tags in self._gold], int)

    @functools.cached_property
    def _right(self) -> np.ndarray:
        """The number of right words of each sentence."""
        pairs = zip(self._gold, self._predicted, strict=True)
        return np.array([sum(map(str.__eq__, *pair)) for pair in pairs], int)

    @functools.cached_property
    def _numbers(self) -> list[np.ndarray]:
        """The tags of all words as numbers, expected and predicted."""
        flat = [list(itertools.chain.from_iterable(s)) for s in (self._gold, self._predicted)]
        numbers = {tag: number for number, tag in enumerate(dict.fromkeys(flat[0] + flat[1]))}
        return [np.array([numbers[tag] for tag in side], int) for side in flat]

    @functools.cached_property
    def _entities(self) -> np.ndarray:
        return _counts(*(map(entities, side) for side in (self._gold, self._predicted)))

    @functools.cached_property
    def _strict(self) -> np.ndarray:
        return _counts(*map(strict_entities, (self._gold, self._predicted)))


def _counts(gold: Iterable[Sequence[object]], predicted: Iterable[Sequence[object]]) -> np.ndarray:
    """Expected, predicted and found entities of each sentence, int `[sentences, 3]`."""
    pairs = zip(map(set, gold), map(set, predicted), strict=True)
    return np.array([(len(a), len(b), len(a & b)) for a, b in pairs], int).reshape(-1, 3)
