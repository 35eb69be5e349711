"""Column numbers of a table's texts and labels, from names or numbers."""

import dataclasses

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview, truncate
from adapter_bert_tf.tasks.own import is_number


def column_numbers(source, header, folder):
    """Returns a dict from field to column number; raises `InputError` for a missing column."""
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


def check_columns(label_cells, source, header, rows, columns, path):
    """Raises `InputError` if a column is used twice, or the header looks like data."""
    numbers = [columns[field] for field in ("text_a", "text_b", "label") if field in columns]
    if len(set(numbers)) < len(numbers):
        raise InputError(
            f"{path}: texts and label must be different columns. Received: "
            f"{preview(dataclasses.asdict(source.columns))}"
        )
    if not source.strict or header is None or "label" not in columns:
        return
    if source.columns.label.strip() in map(str.strip, header) or len(header) <= columns["label"]:
        return
    first = header[columns["label"]].strip()
    others = {cells[columns["label"]].strip() for _, cells in rows if len(cells) > max(numbers)}
    if label_cells.looks_like_a_label(first, others):
        raise InputError(
            f"{path}, line 1: this row looks like data and not like a header: its label "
            f"{preview(first)} is also the label of other rows. If the file has no header, set "
            "header=False; otherwise give the columns by name.",
            "header=False",
        )


def _column_number(column, header, location):
    """Returns the number of a column given by name or number, as an int or a text."""
    number = int(column) if is_number(str(column)) else None
    if header.count(column) > 1:
        raise InputError(
            f"{location}: {header.count(column)} columns have the name {preview(column)}. Rename "
            f"them, or give the column by number. Received: {_format_header(header)}"
        )
    if column not in header:
        if number is not None:
            return number
        names = _format_header(header)
        message = f"{location}: the header has no column {preview(column)}. Received: {names}."
        if header[0].startswith("sep="):
            raise InputError(f"{message} The first line is an instruction to Excel: remove it.")
        raise InputError(f"{message} Check the name and delimiter.", "delimiter")
    if number is not None and header.index(column) != number:
        raise InputError(
            f"{location}: {preview(column)} is the name of column {header.index(column)} and "
            f"the number of another. Rename it. Received: {_format_header(header)}"
        )
    return header.index(column)


def _format_header(header):
    """Formats the names of the first columns, shortened."""
    return truncate(str([name[:80] for name in header[:30]]), 600)
