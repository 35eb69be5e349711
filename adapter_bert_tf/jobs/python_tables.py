"""Texts and labels that Python gives, as tables that the commands read."""

import csv
import hashlib
import io
import os
from collections.abc import Mapping, Sequence, Set
from typing import Any, TypeAlias

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.predict import frames
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks.task import BETWEEN_LABELS

TEXTS, LABEL = ("text_a", "text_b"), "label"
NO_LIST = (str, bytes, Mapping, Set)  # None, or one without an order.
MISSING = ("None", "nan", "<NA>", "NaT")  # What Python, NumPy and pandas call a gap.
# Names of the columns, the label's last, and the rows.
Given: TypeAlias = tuple[list[str], list[list[str]]]


def given(
    texts: Any,
    labels: Any,
    others: Any = None,
    columns: Sequence[str | None] = (),
    sets: bool = False,
) -> Given:
    """The table of texts and labels, or of a DataFrame.

    Args:
      texts: list of texts or of pairs of texts, or a DataFrame.
      labels: a label for each, or the name of the DataFrame's column.
      others: the second texts, or None.
      columns: of a DataFrame's texts.
      sets: whether an example has any number of labels.

    Raises:
      InputError: when they are of different numbers, or no texts.
    """
    if frames.is_frame(texts):
        named = [column for column in columns if column is not None]
        return _of_frame(texts, labels, named, sets)
    lists = [texts, *([] if others is None else [others]), labels]
    if any(isinstance(v, NO_LIST) or not hasattr(v, "__len__") for v in lists):
        raise InputError(
            f"Texts and labels are lists, or a DataFrame and the name of its labels' column. "
            f"Received: {' and '.join(map(preview, lists))}"
        )
    if len({len(values) for values in lists}) > 1:
        numbers = ", ".join(str(len(values)) for values in lists)
        raise InputError(f"Each text has one label. Received: lists of {numbers}.")
    rows = [list(row) for row in zip(*lists, strict=True)]
    if rows and others is None and all(_is_pair(row[0]) for row in rows):
        rows = [[*pair, label] for pair, label in rows]
    _require_texts(rows)
    names = TEXTS[: len(rows[0]) - 1] if rows else TEXTS[:1]
    kept = [_label(row[-1], number, sets) for number, row in enumerate(rows)]
    return [*names, LABEL], [[*row[:-1], label] for row, label in zip(rows, kept, strict=True)]


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2


def _of_frame(frame: Any, label: Any, columns: list[str], sets: bool) -> Given:
    names, there = [*columns, label], list(frame.columns)
    if not isinstance(label, str | int) or not columns or any(n not in there for n in names):
        raise InputError(
            "Of a DataFrame labels is the name of a column, and text_a_column, for pairs "
            f"text_b_column, name others. There are {preview(there)}. Received: labels "
            f"{preview(label)}, texts {preview(columns)}",
            "text_a_column",
            "text_b_column",
        )
    frames.require_unique(frame, [label])
    texts = [list(row) for row in frames.rows(frame, columns)]
    _require_texts([[*row, ""] for row in texts])
    labels = [_label(value, number, sets) for number, value in enumerate(frame[label])]
    return list(map(str, names)), [[*row, value] for row, value in zip(texts, labels, strict=True)]


def _require_texts(rows: Sequence[Sequence[Any]]) -> None:
    for number, row in enumerate(rows):
        if wrong := [text for text in row[:-1] if not isinstance(text, str)]:
            raise InputError(f"A text is a string. Received, at {number}: {preview(wrong[0])}")


def _label(value: Any, place: int, sets: bool) -> str:
    """A label as text: `1` of 1 and of 1.0, which a column with gaps makes of it."""
    if _is_several(value):
        if not sets:
            raise InputError(
                "An example has one label, or with multi_label=True a list of them. Received, at "
                f"{place}: {preview(value)}",
                "multi_label=True",
            )
        return BETWEEN_LABELS.join(sorted(_one_of(label, place) for label in value))
    if isinstance(value, str):
        return value
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, bytes | Mapping):
        raise InputError(f"A label is a text or a number. Received, at {place}: {preview(value)}")
    if str(number) in MISSING:
        raise InputError(
            f"A label is missing, at {place}. Received: {preview(value)}. Leave such rows out."
        )
    if isinstance(number, float) and number.is_integer():
        return str(int(number))
    return str(number)


def _is_several(value: Any) -> bool:
    """Whether these are labels in a list, a set or an array; of numbers that is one for each."""
    if getattr(value, "ndim", 0) and value.dtype.kind in "biuf":
        raise InputError(
            "Several labels of an example are a list of those that it has, and not a number for "
            f"each label. Received: {preview(value)}"
        )
    return isinstance(value, list | tuple | Set) or bool(getattr(value, "ndim", 0))


def _one_of(value: Any, place: int) -> str:
    """One of several labels of an example."""
    label = _label(value, place, False)
    if BETWEEN_LABELS in label:
        raise InputError(
            f"A label of several must not hold {BETWEEN_LABELS!r}. Received, at {place}: "
            f"{preview(label)}"
        )
    return label


def files_of(tables: Mapping[str, Given], folder: str) -> dict[str, bytes]:
    """Paths and content of tables, below a folder of theirs that is called by their content."""
    files = {f"{split}.csv": _csv(*table) for split, table in tables.items()}
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:12]
    return {os.path.join(folder, f"data-{digest}", name): files[name] for name in files}


def _csv(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    plain, all_quoted = (
        csv.writer(text, lineterminator="\n", quoting=quoting)
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    )
    for row in (names, *rows):  # `csv` does not quote a carriage return, which ends a row.
        (all_quoted if any("\r" in cell for cell in row) else plain).writerow(row)
    return text.getvalue().encode("utf-8", "replace")
