"""pandas DataFrames, by what they have in common with all frames: pandas itself is not needed."""

from collections.abc import Iterator, Sequence
from typing import Any

from adapter_bert_tf.predict.cells import cells_of, free


def is_frame(value: Any) -> bool:
    """Whether a value is a DataFrame."""
    return all(hasattr(value, name) for name in ("columns", "iloc", "assign"))


def rows(frame: Any, columns: Sequence[str | int]) -> Iterator[tuple[str, ...]]:
    """Yields the texts of each row; what is missing is an empty text."""
    found = [frame.iloc[:, c] if isinstance(c, int) else frame[c] for c in columns]
    return zip(*(column.where(column.notna(), "") for column in found), strict=True)


def with_answers(frame: Any, answers: Sequence[dict[str, Any]], names: Sequence[str]) -> Any:
    """A copy of a frame with columns of the answers, called by the names or, if taken, others."""
    values = list(zip(*map(cells_of, answers), strict=True)) or [()] * len(names)
    called = free(names, frame.columns)
    return frame.assign(**{name: list(v) for name, v in zip(called, values, strict=True)})
