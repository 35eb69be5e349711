"""Whether a probability is the share of times that it is right (Guo et al. 2017)."""

from typing import Any

import numpy as np

BINS = 10


def calibration(probabilities: np.ndarray, came_true: np.ndarray) -> dict[str, Any]:
    """Bins of equal width, from 0 to 1, and the expected calibration error.

    Args:
      probabilities: float `[n]`, of what was said.
      came_true: bool `[n]`, whether it was so.

    Returns:
      dict with `bins`, dicts with `count`, mean `probability` and `share` that came true (None of
      an empty one), and `error`, the mean distance of the two over all examples.
    """
    stated, true = probabilities.astype(np.float64), came_true.astype(np.float64)
    # As scikit-learn's `calibration_curve` divides, which does not say how many a bin has.
    places = np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], stated)
    counts, sums, trues = (
        np.bincount(places, weights, minlength=BINS) for weights in (None, stated, true)
    )
    bins = [
        {
            "count": int(count),
            "probability": round(total / count, 6) if count else None,
            "share": round(right / count, 6) if count else None,
        }
        for count, total, right in zip(counts, sums.tolist(), trues.tolist(), strict=True)
    ]
    return {"bins": bins, "error": round(float(np.abs(sums - trues).sum() / len(stated)), 6)}
