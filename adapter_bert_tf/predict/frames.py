"""pandas DataFrames, by what they have in common with all frames: pandas itself is not needed."""

from collections.abc import Iterator, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.predict.output_columns import cells_of, filled, free
from adapter_bert_tf.sanitize import preview


def is_frame(value: Any) -> bool:
    """Whether a value is a DataFrame."""
    return all(hasattr(value, name) for name in ("columns", "iloc", "assign"))


def require_one(frame: Any, columns: Sequence[str | int]) -> None:
    """Raises `InputError` where two columns of a frame have one of the names."""
    names = list(frame.columns)
    if twice := [c for c in columns if isinstance(c, str) and names.count(c) > 1]:
        raise InputError(f"The DataFrame has two columns {twice[0]!r}. Rename one of them.")


def rows(frame: Any, columns: Sequence[str | int]) -> Iterator[tuple[str, ...]]:
    """The texts of each row; what is missing is an empty text, and a warning.

    Raises:
      InputError: when two columns of the frame have one name.
    """
    require_one(frame, columns)
    found = [frame.iloc[:, c] if isinstance(c, int) else frame[c] for c in columns]
    gone = zip(*(column.isna() for column in found), strict=True)
    if missing := [str(number) for number, of_row in enumerate(gone) if any(of_row)]:
        logging.warning(
            "%d of %d rows lack a text, which counts as empty: %s.",
            *(len(missing), len(frame), ", ".join(missing[:10])),
        )
    return zip(*(column.where(column.notna(), "") for column in found), strict=True)


def require_use(texts: Any, others: Any, *of_columns: Any) -> None:
    """Columns are of a DataFrame, second texts of a list. Raises `InputError` for the other way."""
    if is_frame(texts) and others is not None:
        raise InputError(
            "The second texts of a DataFrame are a column of it: text_b_column. Received: others",
            "text_b_column",
        )
    if not is_frame(texts) and any(column is not None for column in of_columns):
        raise InputError(
            "text_a_column and text_b_column are of a DataFrame; other second texts are others. "
            f"Received: {preview(of_columns)}",
            "text_a_column",
            "text_b_column",
        )


def with_answers(frame: Any, answers: Sequence[dict[str, Any]], names: Sequence[str]) -> Any:
    """A copy of a frame with columns of the answers, called by the names or, if taken, others."""
    rows = (filled(cells_of(answer)) for answer in answers)
    values = list(zip(*rows, strict=True)) or [()] * len(names)
    called = free(names, frame.columns)
    return frame.assign(**{name: list(v) for name, v in zip(called, values, strict=True)})
