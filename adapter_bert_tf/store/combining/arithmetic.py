"""Ways to make one adapter's weights from those of several: a row of `METHODS` each."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

Stack: TypeAlias = np.ndarray  # `[adapters, ...]`: one variable of all adapters, float64.


class Options(NamedTuple):
    """How adapters are combined.

    Args:
      shares: how much each adapter counts, float64 `[adapters]`.
      density: share of the values of each variable that `ties` and `dare` keep, from 0 to 1.
      random: from which `dare` draws what it keeps.
    """

    shares: np.ndarray
    density: float
    random: np.random.Generator


def weighted_mean(stack: Stack, options: Options) -> np.ndarray:
    """The mean, each adapter counting as much as its share."""
    return weighted_sum(stack, options) / options.shares.sum()


def weighted_sum(stack: Stack, options: Options) -> np.ndarray:
    """The sum of all adapters times their shares (task arithmetic, Ilharco et al. 2023)."""
    return np.tensordot(options.shares, stack, 1)


def ties(stack: Stack, options: Options) -> np.ndarray:
    """TIES (Yadav et al. 2023, section 3): trims, elects a sign, and takes the mean of that sign.

    Of each adapter only the largest values are kept. Each position takes the sign of their sum, and
    the mean of the values with this sign, times their shares, which are not normalized.
    """
    kept = np.stack([_largest(values, options.density) for values in stack])
    sign = np.where(kept.sum(0) >= 0, 1, -1)
    agrees = np.sign(kept) == sign
    return weighted_sum(kept * agrees, options) / np.maximum(agrees.sum(0), 1)


def dare(stack: Stack, options: Options) -> np.ndarray:
    """DARE (Yu et al. 2024, section 3.2): drops values at random, rescales the others, and adds."""
    kept = options.random.random(stack.shape) < options.density
    return weighted_sum(stack * kept / max(options.density, np.finfo(float).tiny), options)


def _largest(values: np.ndarray, density: float) -> np.ndarray:
    """The largest values by their size, at least one; zeros for the others, of equal the later."""
    order = np.argsort(-np.abs(values), axis=None, kind="stable")
    kept = np.zeros(values.size, bool)
    kept[order[: max(1, int(density * values.size))]] = True
    return values * kept.reshape(values.shape)


class Method(NamedTuple):
    """A way to combine adapters: its function, the options it reads, and whether it adds."""

    combine: Callable[[Stack, Options], np.ndarray]
    reads: tuple[str, ...] = ()
    adds: bool = False


METHODS = {
    "mean": Method(weighted_mean),
    "sum": Method(weighted_sum, adds=True),
    "ties": Method(ties, ("density",)),
    "dare": Method(dare, ("density", "seed"), adds=True),
}


def options_for(
    method: str, count: int, shares: Sequence[float] = (), density: float = 0.5, seed: int = 0
) -> Options:
    """The options of a method for `count` adapters.

    The default shares are 1 for methods that take a mean, and 1 / count for those that add.
    """
    usual = 1.0 / count if METHODS[method].adds else 1.0
    values = np.array(shares or [usual] * count, np.float64)
    return Options(values, density, np.random.default_rng(seed))
