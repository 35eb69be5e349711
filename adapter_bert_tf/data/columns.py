"""Which column of a table is what: by name or number, and what cannot be meant."""

import dataclasses

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview, truncate
from adapter_bert_tf.tasks.own import is_number


def column_numbers(source, header, folder):
    """Dict from field to column number. Raises `InputError` for a column that is not there."""
    fields = {
        field: column
        for field, column in dataclasses.asdict(source.columns).items()
        if column is not None
    }
    if header is not None and source.strict:  # Spreadsheets leave spaces around names.
        header = [name.strip() for name in header]
        fields = {
            field: column if isinstance(column, int) else column.strip()
            for field, column in fields.items()
        }
    if source.optional_label and header is not None and fields.get("label") not in header:
        fields.pop("label", None)
    if header is None:
        return {field: int(column) for field, column in fields.items()}
    return {
        field: _column_number(column, header, f"{folder}/{source.file}, line 1")
        for field, column in fields.items()
    }


def check_columns(task, source, header, rows, columns, path):
    """Texts and label must be different columns, the header no data. Raises `InputError`."""
    chosen = [columns[field] for field in ("text_a", "text_b", "label") if field in columns]
    if len(set(chosen)) < len(chosen):
        raise InputError(
            f"{path}: the texts and the label must be different columns. Received: "
            f"{preview(dataclasses.asdict(source.columns))}"
        )
    if not source.strict or header is None or "label" not in columns:
        return
    if source.columns.label.strip() in map(str.strip, header) or len(header) <= columns["label"]:
        return
    first = header[columns["label"]].strip()
    others = {cells[columns["label"]].strip() for _, cells in rows if len(cells) > max(chosen)}
    if _is_number(first) if task.regression else first in others:
        raise InputError(
            f"{path}, line 1: this row looks like data and not like a header: its label "
            f"{preview(first)} is that of other rows. If the file has no header, say "
            "header=False; else name the columns by their names.",
            "header=False",
        )


def _is_number(text):
    try:
        return float(text) is not None
    except ValueError:
        return False


def _column_number(column, header, place):
    """Place of a column that is named, or numbered, as an int or as text."""
    number = int(column) if is_number(str(column)) else None
    if header.count(column) > 1:
        raise InputError(
            f"{place}: {header.count(column)} columns are called {preview(column)}. Rename them, "
            f"or say which by its number. Received: {_shown(header)}"
        )
    if column not in header:
        if number is not None:
            return number
        said = f"{place}: the header has no column {preview(column)}. Received: {_shown(header)}."
        if header[0].startswith("sep="):
            raise InputError(f"{said} The first line is Excel's own: remove it.")
        raise InputError(f"{said} Is delimiter right?", "delimiter")
    if number is not None and header.index(column) != number:
        raise InputError(
            f"{place}: {preview(column)} is the name of column {header.index(column)} and "
            f"the number of another. Rename it. Received: {_shown(header)}"
        )
    return header.index(column)


def _shown(header):
    """The names of the first columns, in short."""
    return truncate(str([name[:80] for name in header[:30]]), 600)
