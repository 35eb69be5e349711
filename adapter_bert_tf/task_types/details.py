"""Which single examples `eval_details.json` shows, and how values are rounded there."""

from typing import Any

import numpy as np

MOST_ERRORS = 25
LONGEST_TEXT, LONGEST_LABEL = 600, 80  # Characters.


def largest(rows: np.ndarray, measure: np.ndarray) -> np.ndarray:
    """The rows with the largest measure, largest first, equal ones in their order."""
    chosen: np.ndarray = rows[np.argsort(-measure[rows], kind="stable")][:MOST_ERRORS]
    return chosen


def rounded(value: Any) -> float:
    """A number with six digits."""
    return float(f"{float(value):.6g}")
