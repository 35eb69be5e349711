"""Texts and labels of Python as tables that the commands read."""

import csv
import io
import os
from collections.abc import Mapping, Sequence, Set
from typing import Any, TypeAlias

from adapter_bert_tf import storage
from adapter_bert_tf.data.tables.indicator_columns import is_several, problem_of_labels
from adapter_bert_tf.errors import InputError, error_context
from adapter_bert_tf.jobs.python_data import Given, PythonData
from adapter_bert_tf.predict import frames
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types import chosen_type
from adapter_bert_tf.tasks.own import DEV_SHARE
from adapter_bert_tf.tasks.task import BETWEEN_LABELS

TEXTS, LABEL = ("text_a", "text_b"), "label"
NOT_LISTS = (str, bytes, Mapping, Set)  # Sets have no order.
MISSING = ("None", "nan", "<NA>", "NaT")  # Missing values of Python, NumPy and pandas.
# Names of the columns, the label's last, and the rows.
Table: TypeAlias = tuple[list[str], list[list[str]]]


def table_of(
    texts: Any,
    labels: Any,
    others: Any = None,
    columns: Sequence[str | None] = (),
    sets: bool = False,
) -> Table:
    """Returns the table of texts and labels, or of a DataFrame. Raises `InputError`.

    Args:
      texts: list of texts or of pairs of texts, or a DataFrame.
      labels: a label for each, or the name of the DataFrame's column.
      others: the second texts, or None.
      columns: of a DataFrame's texts.
      sets: whether an example has any number of labels.
    """
    if frames.is_frame(texts):
        named = [column for column in columns if column is not None]
        names, rows = [*named, str(labels)], _rows_of_frame(texts, labels, named)
    else:
        rows = _rows_of_lists([texts, *([] if others is None else [others]), labels])
        firsts = [row[0] for row in rows]
        is_pairs = all(isinstance(first, tuple | list) and len(first) == 2 for first in firsts)
        if rows and others is None and is_pairs:
            rows = [[*pair, label] for pair, label in rows]
        names = [*TEXTS[: len(rows[0]) - 1 if rows else 1], LABEL]
    for number, (*row, _) in enumerate(rows):
        if wrong := [text for text in row if not isinstance(text, str)]:
            raise InputError(f"A text is a string. Received, at {number}: {preview(wrong[0])}")
    return names, [[*row[:-1], _label(row[-1], i, sets)] for i, row in enumerate(rows)]


def _rows_of_lists(lists: Sequence[Any]) -> list[list[Any]]:
    if any(isinstance(v, NOT_LISTS) or not hasattr(v, "__len__") for v in lists):
        raise InputError(
            f"Texts and labels are lists, or a DataFrame and the name of its labels' column. "
            f"Received: {' and '.join(map(preview, lists))}"
        )
    if len({len(values) for values in lists}) > 1:
        numbers = ", ".join(str(len(values)) for values in lists)
        raise InputError(f"Each text has one label. Received: lists of {numbers}.")
    return [list(row) for row in zip(*lists, strict=True)]


def _rows_of_frame(frame: Any, label: Any, columns: list[str]) -> list[list[Any]]:
    existing = frames.column_names(frame)
    names = [*columns, str(label)]
    are_columns = isinstance(label, str | int) and {*names} <= {*existing}
    if not are_columns or not columns or len({*names}) < len(names):
        raise InputError(
            "For a DataFrame labels is the name of a column, and text_a_column and text_b_column "
            f"are names of others. Columns: {preview(existing)}. Received: labels "
            f"{preview(label)}, texts {preview(columns)}",
            "text_a_column",
            "text_b_column",
        )
    frames.require_unique(frame, [str(label)])
    labels = frame.iloc[:, existing.index(str(label))]
    return [[*row, value] for row, value in zip(frames.rows(frame, columns), labels, strict=True)]


def _label(value: Any, place: int, sets: bool) -> str:
    """Returns a label as text: `1` for 1 and for 1.0, which a column with gaps makes of it."""
    if is_several(value):
        if not sets:
            raise InputError(
                "An example has one label, or with multi_label=True a list of them. Received, at "
                f"{place}: {preview(value)}",
                "multi_label=True",
            )
        labels = sorted(_label(label, place, False) for label in value)
        if problem := problem_of_labels(labels):
            raise InputError(f"{problem} Received, at {place}: {preview(list(value))}")
        return BETWEEN_LABELS.join(labels)
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


def data_of(given: Given, options: Mapping[str, Any]) -> PythonData:
    """Returns the tables of what `abt.train` is given. Raises `InputError`."""
    if isinstance(given.texts, str | os.PathLike) and any(given.columns):
        return _files_of(given, options)
    sets = chosen_type(options).several
    tables = {"train": table_of(given.texts, given.labels, given.others, given.columns, sets)}
    if given.dev is not None:
        tables["dev"] = _dev_table(given, sets, tables["train"][0])
    *names, label = tables["train"][0]
    settings = {
        "task_name": "tsv",
        **dict(zip(("text_a_column", "text_b_column"), names, strict=False)),
        "label_column": label,
        "do_eval": given.dev is not None or options.get("dev_share", DEV_SHARE) != 0,
    }
    return PythonData({f"{split}.csv": _csv(*table) for split, table in tables.items()}, settings)


def _files_of(given: Given, options: Mapping[str, Any]) -> PythonData:
    """Returns the settings that read tables from files."""
    dev = given.dev
    are_paths = dev is None or isinstance(dev, str | os.PathLike)
    if not (are_paths and given.others is None and isinstance(given.labels, str | int)):
        raise InputError(
            "For a file labels is the name of a column, dev is the path of another file, and "
            "second texts are a column: text_b_column. Received: "
            f"{preview([given.labels, dev, given.others])}",
            "text_b_column",
        )
    columns = zip(("text_a_column", "text_b_column"), given.columns, strict=True)
    files = {"train_file": given.texts, "dev_file": dev}
    settings = {
        "task_name": "tsv",
        **{name: storage.path_of(path) for name, path in files.items() if path is not None},
        **{name: str(column) for name, column in columns if column is not None},
        "label_column": str(given.labels),
        "do_eval": dev is not None or options.get("dev_share", DEV_SHARE) != 0,
    }
    return PythonData({}, settings, {})


def _dev_table(given: Given, sets: bool, expected: Sequence[str]) -> Table:
    dev, is_frame = given.dev, frames.is_frame(given.dev)
    if not is_frame and not (isinstance(dev, list | tuple) and len(dev) in (2, 3)):
        raise InputError(
            "dev is (texts, labels), for pairs (texts, labels, others), or a DataFrame. "
            f"Received: {preview(dev)}"
        )
    texts, labels, others = (dev, given.labels, None) if is_frame else (*dev, None)[:3]
    with error_context("dev"):
        table = table_of(texts, labels, others, given.columns, sets)
    if len(table[0]) != len(expected):
        raise InputError(
            "dev must have as many texts as the training data. Received: train of "
            f"{preview(expected)} and dev of {preview(table[0])}"
        )
    return list(expected), table[1]


def _csv(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    order = _order(names)
    names, rows = [names[i] for i in order], [[row[i] for i in order] for row in rows]
    text = io.StringIO(newline="")
    minimal, all_quoted = (
        csv.writer(text, lineterminator="\n", quoting=quoting)
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    )
    for row in (names, *rows):  # `csv` does not quote a carriage return, which ends a row.
        (all_quoted if any("\r" in cell for cell in row) else minimal).writerow(row)
    return text.getvalue().encode("utf-8", "replace")


def _order(names: Sequence[str]) -> list[int]:
    """The order of columns in a file; a name that is the number of a column stands there.

    Elsewhere it would be the name of one column and the number of another.
    """
    places = list(map(str, range(len(names))))
    placed = {name: i for i, name in enumerate(names) if name in places}
    others = [i for i in range(len(names)) if i not in placed.values()]
    return [placed[place] if place in placed else others.pop(0) for place in places]
