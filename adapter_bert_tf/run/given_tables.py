"""Texts and labels that Python gives, as tables that the commands read."""

import csv
import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.predict import frames
from adapter_bert_tf.received import shown
from adapter_bert_tf.tasks.task import BETWEEN_LABELS

TEXTS, LABEL = ("text_a", "text_b"), "label"
# Names of the columns, the label's last, and the rows.
Given: TypeAlias = tuple[list[str], list[list[str]]]


def given(texts: Any, labels: Any, others: Any = None, columns: Sequence[str | None] = ()) -> Given:
    """The table of texts and labels, or of a DataFrame.

    Args:
      texts: list of texts, or a DataFrame.
      labels: a label for each, or the name of the DataFrame's column.
      others: the second texts, or None.
      columns: of a DataFrame's texts.

    Raises:
      InputError: when they are of different numbers, or no texts.
    """
    if frames.is_frame(texts):
        return _of_frame(texts, labels, [column for column in columns if column is not None])
    lists = [texts, *([] if others is None else [others]), labels]
    if any(isinstance(values, str) or not hasattr(values, "__len__") for values in lists):
        raise InputError(
            f"Texts and labels are lists, or a DataFrame and the name of its labels' column. "
            f"Received: {shown(texts)} and {shown(labels)}"
        )
    if len({len(values) for values in lists}) > 1:
        numbers = ", ".join(str(len(values)) for values in lists)
        raise InputError(f"Each text has one label. Received: lists of {numbers}.")
    rows = [list(row) for row in zip(*lists, strict=True)]
    _require_texts(rows)
    return [*TEXTS[: len(lists) - 1], LABEL], [[*row[:-1], _label(row[-1])] for row in rows]


def _of_frame(frame: Any, label: Any, columns: list[str]) -> Given:
    names = [*columns, label]
    missing = [name for name in names if name not in frame.columns]
    if not columns or missing:
        raise InputError(
            "Of a DataFrame text_a_column, for pairs text_b_column, and labels name columns. "
            f"There are {shown(list(frame.columns))}. Received: {shown(names)}",
            "text_a_column",
            "text_b_column",
        )
    texts = [list(row) for row in frames.rows(frame, columns)]
    _require_texts([[*row, ""] for row in texts])
    labels = [_label(value) for value in frame[label]]
    return list(map(str, names)), [[*row, value] for row, value in zip(texts, labels, strict=True)]


def _require_texts(rows: Sequence[Sequence[Any]]) -> None:
    for number, row in enumerate(rows):
        if wrong := [text for text in row[:-1] if not isinstance(text, str)]:
            raise InputError(f"A text is a string. Received, at {number}: {shown(wrong[0])}")


def _label(value: Any) -> str:
    """A label as text: `1` of 1 and of 1.0, which a column with gaps makes of it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | set):  # Of `multi_label=True`.
        return BETWEEN_LABELS.join(sorted(map(_label, value)))
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, float) and number.is_integer():
        return str(int(number))
    return str(number)


def write(tables: Mapping[str, Given], folder: str) -> str:
    """Writes tables into a folder that is called by their content, below another; returns it."""
    files = {f"{split}.csv": _csv(*table) for split, table in tables.items()}
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:12]
    place = os.path.join(folder, f"data-{digest}")
    for name, content in files.items():
        storage.write_bytes(os.path.join(place, name), content)
    return place


def _csv(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([names, *rows])
    return text.getvalue().encode("utf-8", "replace")
