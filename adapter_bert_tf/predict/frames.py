"""DataFrames, by the attributes of pandas that they have; pandas is not imported."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.predict.writing import fill_empty, unused_names
from adapter_bert_tf.sanitize import preview


def is_frame(value: Any) -> bool:
    """Whether a value is a DataFrame."""
    return all(hasattr(value, name) for name in ("columns", "iloc", "assign"))


def names_of(frame: Any) -> list[str]:
    """The names of the columns, as text: those of a table without a header are numbers."""
    return list(map(str, frame.columns))


def require_unique(frame: Any, columns: Sequence[str | int]) -> None:
    """Raises `InputError` if two columns of a frame have one of these names."""
    names = names_of(frame)
    if duplicates := [c for c in columns if names.count(str(c)) > 1]:
        raise InputError(f"The DataFrame has two columns {duplicates[0]!r}. Rename one of them.")


def rows(frame: Any, columns: Sequence[str | int]) -> Iterator[tuple[str, ...]]:
    """The texts of each row; a missing value becomes an empty text, with a warning.

    A column is given by its name, or by its number from 0 if no name is equal to that.
    """
    require_unique(frame, columns)
    names = names_of(frame)
    places = [names.index(str(c)) if str(c) in names else int(c) for c in columns]
    texts = [frame.iloc[:, place] for place in places]
    is_missing = map(any, zip(*(column.isna() for column in texts), strict=True))
    if missing := [str(number) for number, missing in enumerate(is_missing) if missing]:
        logging.warning(
            f"{len(missing)} of {len(frame)} rows lack a text, which counts as empty: "
            f"{', '.join(missing[:10])}."
        )
    # As objects: a categorical column takes no new value.
    return zip(*(column.astype(object).where(column.notna(), "") for column in texts), strict=True)


def check_arguments(texts: Any, others: Any, *column_names: Any) -> None:
    """Raises `InputError` for column names without a DataFrame, or second texts with one."""
    if is_frame(texts) and others is not None:
        message = "The second texts of a DataFrame are a column: set text_b_column, not others."
        raise InputError(message, "text_b_column")
    if not is_frame(texts) and any(column is not None for column in column_names):
        message = (
            "text_a_column and text_b_column need a DataFrame; give other second texts as others. "
            f"Received: {preview(column_names)}"
        )
        raise InputError(message, "text_a_column", "text_b_column")


def with_answers(frame: Any, answers: Iterable[list[Any]], names: Sequence[str]) -> Any:
    """A copy of a frame with the values of answers as more columns, renamed if a name is taken."""
    columns = list(zip(*map(fill_empty, answers), strict=True)) or [()] * len(names)
    new_names = unused_names(names, frame.columns)
    return frame.assign(**{n: list(c) for n, c in zip(new_names, columns, strict=True)})
