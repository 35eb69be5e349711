"""Random numbers and orders as functions of counters: nothing is stored, and any part can be had.

A plan of 20 million sequences as an array would take 160 MB for each epoch. A run that goes on, and
each of several hosts, computes the same numbers from seed and position.
"""

from __future__ import annotations

import numpy as np

ROUNDS = 8
_STEP = np.uint64(0x9E3779B97F4A7C15)


def random_bits(seed: int, *counters: int | np.ndarray) -> np.ndarray:
    """64 random bits for each combination of counters, uint64, broadcast to one shape.

    The mixing is that of SplitMix64 (Steele et al. 2014), once for each counter.
    """
    bits = _mixed(np.asarray(seed, np.uint64) + _STEP)
    for counter in counters:
        with np.errstate(over="ignore"):
            bits = _mixed(bits + (np.asarray(counter).astype(np.uint64) + np.uint64(1)) * _STEP)
    return np.asarray(bits)


def uniform(bits: np.ndarray) -> np.ndarray:
    """Numbers from 0 to below 1, float64, from random bits."""
    return (bits >> np.uint64(11)) * 2.0**-53


def shuffled(positions: np.ndarray, count: int, seed: int, epoch: np.ndarray) -> np.ndarray:
    """The numbers at positions of a random order of `count` numbers, int64, one order an epoch.

    A Feistel network permutes the numbers below a power of four; results from `count` on are
    permuted again until they are below (Black and Rogaway 2002).
    """
    half = np.uint64(max((int(count - 1).bit_length() + 1) // 2, 1))
    mask = (np.uint64(1) << half) - np.uint64(1)
    values, epochs = (np.array(x, np.uint64) for x in np.broadcast_arrays(positions, epoch))
    left_over = np.ones(values.shape, bool)
    while left_over.any():
        high, low = values[left_over] >> half, values[left_over] & mask
        for number in range(ROUNDS):
            bits = random_bits(seed, epochs[left_over], number, low)
            high, low = low, high ^ (bits & mask)
        values[left_over] = high << half | low
        left_over &= values >= np.uint64(count)
    return values.astype(np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
