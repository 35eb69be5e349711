"""`--class_weights`: how much an example counts in training, by its label."""

import math
import re
from collections.abc import Sequence

import numpy as np

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

BALANCED = "balanced"


def parse_weights(text: str | None, labels: Sequence[str], ids: np.ndarray) -> list[float]:
    """The weight of each label.

    Args:
      text: of the flag; None: all count alike.
      labels: in the order of their ids.
      ids: int `[examples]`, of the training data. Balanced, a label that n of N examples have
        weighs N / (labels n), as in scikit-learn; one that none has weighs 1.

    Raises:
      InputError: for an unknown label or one named twice, or a weight that is no number above 0.
    """
    if text is None:
        return [1.0] * len(labels)
    if text == BALANCED:
        counts = np.bincount(ids, minlength=len(labels))
        return [len(ids) / (len(labels) * n) if n else 1.0 for n in counts.tolist()]
    named = dict[str, float]()
    for part in _parts(text, labels):
        label, equals, number = part.rpartition("=")
        if not equals or label.strip() not in labels:
            raise InputError(
                f"--class_weights is {BALANCED} or LABEL=WEIGHT with commas between, of the labels "
                f"{preview(list(labels))}. Received: {preview(part)}"
            )
        if label.strip() in named:
            raise InputError(
                f"--class_weights: a label has one weight. Received twice: {preview(label.strip())}"
            )
        named[label.strip()] = _weight(number)
    return [named.get(label, 1.0) for label in labels]


def _parts(text: str, labels: Sequence[str]) -> list[str]:
    """What stands between commas, but for those within labels."""
    known = "|".join(map(re.escape, labels))
    return re.findall(rf"(?:^|,)(\s*(?:{known})\s*=[^,=]*(?=,|$)|[^,]*)", text)


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise InputError(
            f"--class_weights: a weight is a number above 0. Received: {preview(text)}"
        )
    return weight
