"""Labels that look as if something else was meant by them: named, and taken as they are."""

from collections.abc import Sequence

from absl import logging

from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks.task import BETWEEN_LABELS

FEWEST_SCORES = 3  # `0.0` and `1.0` are classes of whoever has gaps in a column of numbers.


def warn(labels: Sequence[str]) -> None:
    """Warns of labels of classes that may be scores, or several labels in one cell.

    Args:
      labels: the different ones of the training data.
    """
    if _may_be_scores(labels):
        logging.warning(
            "The labels %s are numbers, and count as classes. If they are scores: --regression.",
            preview(list(labels[:5])),
        )
    if joined := [label for label in labels if _may_be_several(label)]:
        logging.warning(
            "%s counts as one label. If labels stand there with %s between, say --multi_label.",
            *(preview(joined[0], 80), BETWEEN_LABELS),
        )


def _may_be_scores(labels: Sequence[str]) -> bool:
    numbers = [_number(label) for label in labels]
    known = [number for number in numbers if number is not None]
    fractions = any(not number.is_integer() for number in known)
    return len(known) == len(labels) >= FEWEST_SCORES and fractions


def _number(label: str) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None


def _may_be_several(label: str) -> bool:
    parts = label.split(BETWEEN_LABELS)
    return len(parts) > 1 and all(part.strip() for part in parts)
