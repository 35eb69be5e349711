"""Masks of masked-language-model training (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.data.on_disk.order import random_bits, uniform
from adapter_bert_tf.errors import InputError

# Inputs of the model in addition to the encoder's, `[batch, places]`: where pieces are to be
# predicted, and for an evaluation the pieces there (int32), and what each counts (float32).
POSITIONS, TARGETS, WEIGHTS = "masked_positions", "masked_ids", "masked_weights"
MASKED, REPLACED = 0.8, 0.1  # Of the chosen pieces; the others stay as they are.
_CHOICE, _ACTION, _REPLACEMENT = 0, 1, 2  # What a number is drawn for.


class MaskedRows(NamedTuple):
    """Sequences with masks; `places` is the most that a sequence can have.

    Attributes:
      ids: int32 `[rows, length]`, the inputs.
      positions: int32 `[rows, places]`, where pieces are to be predicted; 0 for places not used.
      targets: int32 `[rows, places]`, the pieces there.
      used: bool `[rows, places]`.
    """

    ids: np.ndarray
    positions: np.ndarray
    targets: np.ndarray
    used: np.ndarray


@dataclasses.dataclass(frozen=True)
class Masking:
    """How pieces are masked. Raises `InputError` for a share outside 0 to 1.

    Args:
      share: of the pieces of a sequence, without special tokens, that are chosen.
      whole_words: whether all pieces of a word are chosen together.
      mask_id: id of [MASK].
      is_special: bool `[vocabulary]`, pieces that are not chosen and replace none.
      continues: bool `[vocabulary]`, pieces that continue a word.
    """

    share: float
    whole_words: bool
    mask_id: int
    is_special: np.ndarray
    continues: np.ndarray

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            message = f"mask_share must be above 0 and below 1. Received: {self.share}"
            raise InputError(message, "mask_share")

    def places(self, length: int) -> int:
        """The most pieces that are chosen of a sequence."""
        return max(1, int(self.share * length + 0.5))

    def mask(
        self, ids: np.ndarray, lengths: np.ndarray, seed: int, step: int, rows: np.ndarray
    ) -> MaskedRows:
        """Masks sequences; the masks of a row depend on seed, step and its number alone.

        Args:
          ids: int32 `[rows, length]`.
          lengths: int32 `[rows]`, without the padding.
          seed, step: of the training.
          rows: int `[rows]`, numbers of the rows in the batch.
        """
        place = (seed, step, rows[:, np.newaxis], np.arange(ids.shape[1]))
        inside = np.arange(ids.shape[1]) < lengths[:, np.newaxis]
        candidates = inside & ~self.is_special[ids]
        count = np.maximum((self.share * candidates.sum(-1) + 0.5).astype(np.int64), 1)
        count = np.minimum(count, candidates.sum(-1))
        order = self._order(ids, candidates, random_bits(*place, _CHOICE), count)
        chosen = order[:, : self.places(ids.shape[1])]
        used = np.arange(chosen.shape[1]) < count[:, np.newaxis]
        chosen = np.sort(np.where(used, chosen, ids.shape[1]), -1)
        used = chosen < ids.shape[1]
        positions = np.where(used, chosen, 0)
        targets = np.take_along_axis(ids, positions, -1)
        new = np.take_along_axis(self._replaced(ids, place), positions, -1)
        masked = ids.copy()
        row, column = np.nonzero(used)
        masked[row, positions[row, column]] = new[row, column]
        return MaskedRows(masked, positions.astype(np.int32), targets, used)

    def _order(
        self, ids: np.ndarray, candidates: np.ndarray, bits: np.ndarray, count: np.ndarray
    ) -> np.ndarray:
        """Positions in the order in which they are chosen, int64 `[rows, length]`."""
        bits = np.where(candidates, bits >> np.uint64(1), ~np.uint64(0))  # The others come last.
        if not self.whole_words:
            return np.argsort(bits, -1, kind="stable")
        continues = candidates & self.continues[ids]
        continues[:, 1:] &= candidates[:, :-1]
        words = np.cumsum(~continues, -1)
        # A word has the number of its first piece.
        first = np.maximum.accumulate(np.where(continues, 0, np.arange(ids.shape[1])), -1)
        order = np.argsort(np.take_along_axis(bits, first, -1), -1, kind="stable")
        for row in range(len(ids)):
            order[row] = _fitting_first(order[row], words[row], int(count[row]))
        return order

    def _replaced(
        self, ids: np.ndarray, place: tuple[int, int, np.ndarray, np.ndarray]
    ) -> np.ndarray:
        """What stands at each position if it is chosen."""
        action = uniform(random_bits(*place, _ACTION))
        others = np.flatnonzero(~self.is_special).astype(np.int32)
        drawn = others[random_bits(*place, _REPLACEMENT) % np.uint64(len(others))]
        replaced = np.where(action < MASKED + REPLACED, drawn, ids)
        return np.where(action < MASKED, self.mask_id, replaced).astype(np.int32)


def _fitting_first(order: np.ndarray, words: np.ndarray, room: int) -> np.ndarray:
    """An order whose first `room` positions are whole words, as far as any fit.

    A word that does not fit into the room that is left is passed over. The last places may hold a
    part of the first of these.
    """
    first, later = list[int](), list[int]()
    starts = np.flatnonzero(np.diff(words[order], prepend=-1))
    for word in np.split(order, starts[1:]):
        target = first if len(first) + len(word) <= room else later
        target.extend(word.tolist())
        if len(first) == room:
            break
    rest = np.setdiff1d(order, first + later, assume_unique=True)
    return np.array([*first, *later, *rest], np.int64)


def masking_of(vocabulary: Vocabulary, mask_id: int, share: float, whole_words: bool) -> Masking:
    """The masking of a base's vocabulary."""
    special, pieces = {*dataclasses.astuple(vocabulary.tokenizer.special)}, vocabulary.pieces
    is_special = np.array([piece in special for piece in pieces])
    continues = np.array([piece.startswith("##") for piece in pieces])
    return Masking(share, whole_words, mask_id, is_special, continues)
