"""Facts about single examples in `eval_details.json`: the worst errors, and calibration."""

from typing import Any

import numpy as np

MOST_ERRORS = 25
LONGEST_TEXT, LONGEST_LABEL = 600, 80  # Characters.
BINS = 10


def largest(rows: np.ndarray, measure: np.ndarray) -> np.ndarray:
    """The rows with the largest measure, largest first, equal ones in their order."""
    return rows[np.argsort(-measure[rows], kind="stable")][:MOST_ERRORS]


def rounded(value: Any) -> float:
    """A number with six digits."""
    return float(f"{float(value):.6g}")


def calibration(probabilities: np.ndarray, is_right: np.ndarray) -> dict[str, Any]:
    """Bins of equal width, from 0 to 1, and the expected calibration error (Guo et al. 2017).

    `probabilities` are float `[n]`, `is_right` bool `[n]`. `bins` have `count`, mean `probability`
    and `share` of right predictions (None of an empty one); `error` is the mean distance of the
    two.
    """
    stated, right = probabilities.astype(np.float64), is_right.astype(np.float64)
    # The bins of scikit-learn's `calibration_curve`, which does not return their counts.
    places = np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], stated)
    counts, sums, rights = (
        np.bincount(places, weights, minlength=BINS) for weights in (None, stated, right)
    )
    bins = [
        {
            "count": int(count),
            "probability": round(total / count, 6) if count else None,
            "share": round(number / count, 6) if count else None,
        }
        for count, total, number in zip(counts, sums.tolist(), rights.tolist(), strict=True)
    ]
    return {"bins": bins, "error": round(float(np.abs(sums - rights).sum() / len(stated)), 6)}
