"""Padded lengths of batches: the one rule for examples in memory and for records on disk."""

from typing import TypeAlias

import numpy as np

# A factor of all lengths, the lengths themselves, or None for one fixed length.
PadTo: TypeAlias = int | tuple[int, ...] | None

# For XLA, which compiles for each length.
FEW_LENGTHS = (32, 64, 128, 256, 512)


def allowed_lengths(pad_to: PadTo, max_seq_length: int) -> np.ndarray:
    """Returns the lengths that batches are padded to, rising, `max_seq_length` last; int64."""
    lengths = range(pad_to, max_seq_length, pad_to) if isinstance(pad_to, int) else pad_to or ()
    shorter = [length for length in lengths if length < max_seq_length]
    return np.array([*shorter, max_seq_length], np.int64)


def padded_lengths(longest: np.ndarray, pad_to: PadTo, max_seq_length: int) -> np.ndarray:
    """Returns the length of each batch, int64, from the lengths of its longest examples."""
    allowed = allowed_lengths(pad_to, max_seq_length)
    return allowed[np.searchsorted(allowed, np.minimum(longest, max_seq_length))]
