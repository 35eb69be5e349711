"""Rows of tables: their columns, and their values as texts."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import format_json, parse_json, preview
from adapter_bert_tf.tasks.task import BETWEEN_LABELS

FIRST_ROWS = 1024  # Of JSON lines, whose keys are the columns.


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """Row of a table."""

    line: int  # In the file, from 1.
    values: dict[str, Any]  # Text or JSON value by column name, "0", "1", ... without a header.
    error: str | None = None  # What is wrong with the row.


def texts_of(row: Row, columns: Sequence[str]) -> tuple[str, ...] | str:
    """The texts of a row in these columns; or why it has none, as a sentence."""
    if row.error is not None:
        return row.error
    values = [row.values.get(column) for column in columns]
    if any(map(_is_missing, values)):
        return f"this row has no text in the columns {list(columns)}."
    try:
        return tuple(map(text_of, values))
    except UnicodeDecodeError:
        return f"this row has bytes that are not UTF-8 in the columns {list(columns)}."


def _is_missing(value: Any) -> bool:
    """Whether there is no value: null, or NaN, which is pandas' null among numbers."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def text_of(value: Any) -> str:
    """A JSON value as a text: a list, such as one of words, with spaces between.

    Raises `UnicodeDecodeError` for bytes that are not UTF-8.
    """
    if isinstance(value, bytes):
        return value.decode()
    return " ".join(map(text_of, value)) if isinstance(value, list) else cell_text(value)


def cell_text(value: Any) -> str:
    """A JSON value as the text of a cell: `true`, 1.5, "" for null, and lists with | between."""
    if isinstance(value, str):
        return value
    if _is_missing(value):
        return ""
    if isinstance(value, list):
        return BETWEEN_LABELS.join(map(cell_text, value))
    if isinstance(value, bool | int | float | dict):
        return format_json(value)
    return str(value)  # Dates and decimals of Parquet.


def header_of(path: str, cells: Sequence[str]) -> list[str]:
    """The column names of a table. Raises `InputError` if two are equal."""
    names = [name.strip() for name in cells]
    if len(set(names)) < len(names):
        raise InputError(f"{path}: two columns have one name. Received: {preview(names)}")
    return names


def column_keys(names: Sequence[str] | None, width: int) -> list[str]:
    """The keys of a row's values: the column names, or "0", "1", ... of a table without them."""
    return list(map(str, range(width)) if names is None else names)


def object_names(rows: Iterable[Row]) -> list[str] | None:
    """The columns of JSON lines: the keys of its first rows; None without an object.

    If none of these is an object, they are the keys of the first object after them.
    """
    names, are_known = dict[str, None](), False
    for number, row in enumerate(rows, 1):
        if row.error is None:
            names |= dict.fromkeys(row.values)
            are_known = True
        if are_known and number >= FIRST_ROWS:
            break
    return list(names) if are_known else None


def row_of(names: Sequence[str] | None, width: int, line: int, cells: Sequence[str]) -> Row:
    """The row of a line's cells.

    `names` are those of the columns, None without a header; `width` is the number of cells in the
    first row.
    """
    keys = column_keys(names, width)
    error = None
    if len(cells) > len(keys):
        expected = "under a header of" if names else "below a first row of"
        error = f"{len(cells)} cells {expected} {len(keys)}. Is a delimiter in a text not quoted?"
    return Row(line, dict(zip(keys, cells, strict=False)), error)


def parquet_row(number: int, values: Mapping[str, Any]) -> Row:
    """A row of Parquet, with texts for bytes that are UTF-8, as Hive and Impala write texts."""
    return Row(number, {name: _decode(value) for name, value in values.items()})


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(part) for part in value]
    if isinstance(value, dict):
        return {name: _decode(part) for name, part in value.items()}
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def json_row(number: int, line: str) -> Row:
    """The row of a line of JSON; it has an error where the line is no object."""
    try:
        value = parse_json(line, distinct=True)
    except ValueError as error:
        return Row(number, {}, f"no JSON: {error}.")
    if isinstance(value, dict):
        return Row(number, value)
    return Row(number, {}, f"a row is a JSON object. Received: {preview(value)}.")
