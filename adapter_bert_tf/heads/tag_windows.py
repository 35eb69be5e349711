"""From logits of windows to logits of the words of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from adapter_bert_tf.data.tagging.windows import Windows


class MergedWindows:
    """The logits of all words, each from the window that answers the word.

    Args:
      windows: `Windows` of all sentences.
      counts: number of words of each sentence.
    """

    def __init__(self, windows: Windows, counts: Sequence[int]) -> None:
        self._counts = np.array(counts, np.int64)
        first_words = np.cumsum(self._counts) - self._counts
        self._sentences = windows.sentence
        self._splits = windows.firsts.row_splits.numpy()
        self._positions = windows.firsts.flat_values.numpy()
        per_window = np.repeat(first_words[windows.sentence], np.diff(self._splits))
        self._words = windows.words.flat_values.numpy() + per_window
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, rows: np.ndarray, logits: np.ndarray) -> None:
        """Adds the logits `[rows, seq, tags]` of the windows with these numbers.

        The number of tags may differ between calls.
        """
        begins, ends = self._splits[rows], self._splits[rows + 1]
        lengths = ends - begins
        before = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(begins - before, lengths)
        of_words = logits[np.repeat(np.arange(len(rows)), lengths), self._positions[places]]
        self._parts.append((self._words[places], of_words))

    def sentences(self) -> list[np.ma.MaskedArray]:
        """The logits of each sentence, float32 `[words, tags]`; a word without pieces is masked."""
        width = max((logits.shape[1] for _, logits in self._parts), default=0)
        merged = np.ma.masked_all((self._counts.sum(), width), np.float32)
        for words, logits in self._parts:
            merged[words, : logits.shape[1]] = logits
        ends = np.cumsum(self._counts)
        return [merged[end - count : end] for end, count in zip(ends, self._counts, strict=True)]
