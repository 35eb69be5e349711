"""Answers as columns of a table."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from adapter_bert_tf.tasks.task import BETWEEN_LABELS


def cells_of(answer: Mapping[str, Any]) -> list[Any]:
    """An answer as cells, in the order of `TaskType.columns`; None where there is nothing."""
    single = [_cell(value) for name, value in answer.items() if name != "probabilities"]
    return [*single, *answer.get("probabilities", {}).values()]


def _cell(value: Any) -> Any:
    return BETWEEN_LABELS.join(value) if isinstance(value, list) else value


def filled(cells: Iterable[Any]) -> list[Any]:
    """The cells of a table, where nothing is an empty text."""
    return ["" if cell is None else cell for cell in cells]


def free(names: Sequence[str], taken: Collection[str]) -> list[str]:
    """The names, with `predicted_` before those that the table has already."""
    found = []
    for name in names:
        while name in taken:
            name = f"predicted_{name}"
        found.append(name)
    return found
