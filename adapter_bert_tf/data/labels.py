"""Labels: inferred, turned into ids or scores, and kept in proportion when data is cut down."""

import math
import re

import numpy as np
from absl import logging

from adapter_bert_tf.data.splits import stratified_subset
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview


def infer_labels(labels):
    """Sorted distinct label strings; numbers in numeric order."""
    distinct = sorted(set(labels))
    _warn_of_twins(distinct)
    if all(re.fullmatch("-?[0-9]{1,18}", label) for label in distinct):
        return tuple(sorted(distinct, key=int))
    return tuple(distinct)


def require_one_line(labels, places):
    """Labels that a line of a table can hold.

    Args:
      labels: of examples.
      places: pairs of file and line of the same.

    Raises:
      InputError: for a label with a tab or a line end.
    """
    for label, (path, line) in zip(labels, places, strict=True):
        if "\n" in label or "\t" in label:
            raise InputError(
                f"{path}, line {line}: a label must not hold a tab or a line end. Received: "
                f"{preview(label)}"
            )


def _warn_of_twins(labels):
    """Warns of labels that differ only in case or spaces: they are most likely one."""
    by_text: dict[str, list[str]] = {}
    for label in labels:
        by_text.setdefault("".join(label.split()).casefold(), []).append(label)
    for twins in by_text.values():
        if len(twins) > 1:
            logging.warning(
                "%s are different labels, though they differ only in case or spaces. If they are "
                "one, write them alike.",
                " and ".join(repr(label[:80]) for label in twins[:5]),
            )


LARGEST_SCORE = 1e30  # Squares of what is not far above have no place in a float32.
# What `float` takes besides, `1_0` and the digits of other scripts, is hardly meant as a score.
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
UNKNOWN = -1  # Id of a row of a test file whose label is not known; a score is NaN there.


def is_known(labels):
    """bool `[examples]`: whether each label id or score is one."""
    if labels.ndim == 2:
        return np.ones(len(labels), bool)
    return labels != UNKNOWN if labels.dtype == np.int32 else ~np.isnan(labels)


def label_ids(task, examples):
    """int32 `[examples]` label ids, or for regression float32 scores; None if there are none.

    Of any number of labels float32 `[examples, labels]`, 1 for each that an example has.

    Where a row has no label, the id is `UNKNOWN`, the score NaN.

    Raises:
      InputError: for a label that the task does not have, or a score that is no number.
    """
    if examples.labels is None:
        return None
    if task.regression:
        return np.array(
            [
                math.nan if label is None else _score(label, place)
                for label, place in zip(examples.labels, examples.places, strict=True)
            ],
            np.float32,
        )
    ids = {label: i for i, label in enumerate(task.labels)} | {None: UNKNOWN}
    cells = [(None,) if cell is None else task.labels_in(cell) for cell in examples.labels]
    for labels, (path, line) in zip(cells, examples.places, strict=True):
        for label in labels:
            if label not in ids:
                raise InputError(
                    f"{path}, line {line}: unknown label {preview(label)}. The task's labels, "
                    f"those of its training data, are {_shown(task.labels)}."
                )
    if not task.multi_label:
        return np.array([ids[label] for (label,) in cells], np.int32)
    found = np.zeros((len(cells), len(task.labels)), np.float32)
    for row, labels in zip(found, cells, strict=True):
        row[[ids[label] for label in labels]] = 1.0
    return found


def _shown(labels):
    first = ", ".join(preview(label, 60) for label in labels[:30])
    return f"[{first}{', ...' if len(labels) > 30 else ''}]"


def _score(label, place):
    score = float(label) if _NUMBER.fullmatch(label) else math.nan
    if not abs(score) <= LARGEST_SCORE:  # NaN is not, either.
        raise InputError(
            f"{place[0]}, line {place[1]}: the score must be a number, and at most "
            f"{LARGEST_SCORE:g}. Received: {preview(label)}"
        )
    return score


def limit(task, examples, number, seed):
    """A seeded, stratified subset of `number` examples; all of them if there are no more."""
    if number is None or number >= len(examples):
        return examples
    strata = [""] * len(examples) if task.regression else examples.labels
    return examples.take(stratified_subset(strata, number, seed))
