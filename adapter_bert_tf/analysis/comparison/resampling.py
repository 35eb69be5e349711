"""How sure a metric of a development set is, and a difference of two on the same examples."""

from collections.abc import Callable

import numpy as np
import scipy.stats

RESAMPLES, SURE_BY = 1_000, 0.95
Score = Callable[[np.ndarray], float]  # Of numbers of examples `[examples]`.


def interval(score: Score, count: int, seed: int = 0) -> tuple[float, float]:
    """The 95% percentile bootstrap interval of a metric.

    Args:
      score: the metric of the examples with some numbers, with repetitions.
      count: of examples.
      seed: of the resamples; the same seed draws the same.
    """
    rng = np.random.default_rng(seed)
    values = [score(rng.integers(0, count, count)) for _ in range(RESAMPLES)]
    low, high = np.quantile(values, [(1 - SURE_BY) / 2, (1 + SURE_BY) / 2])
    return float(low), float(high)


def mcnemar(right_a: np.ndarray, right_b: np.ndarray) -> tuple[int, int, float]:
    """McNemar's exact test: whether two classifiers are right equally often.

    Args:
      right_a, right_b: bool `[examples]`.

    Returns:
      (number that only a has right, that only b has right, two-sided p).
    """
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    if only_a + only_b == 0:
        return 0, 0, 1.0
    return only_a, only_b, float(scipy.stats.binomtest(only_a, only_a + only_b).pvalue)
