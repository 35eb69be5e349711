"""Answers as columns of a table."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from adapter_bert_tf.tasks.task import BETWEEN_LABELS


def answer_cells(answer: Mapping[str, Any]) -> list[Any]:
    """An answer as cells, in the order of `TaskType.columns`; None for a missing value."""
    single = [
        BETWEEN_LABELS.join(value) if isinstance(value, list) else value
        for name, value in answer.items()
        if name != "probabilities"
    ]
    return [*single, *answer.get("probabilities", {}).values()]


def fill_empty(cells: Iterable[Any]) -> list[Any]:
    """The cells, with an empty text for None."""
    return ["" if cell is None else cell for cell in cells]


def unused_names(names: Sequence[str], taken: Collection[str]) -> list[str]:
    """The names, with `predicted_` before those that the table has already."""
    prefix = "predicted_"
    return [
        next(new for n in itertools.count() if (new := prefix * n + name) not in taken)
        for name in names
    ]
