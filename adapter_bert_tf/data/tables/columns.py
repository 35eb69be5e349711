"""Column numbers of a table's texts and labels, from names or numbers."""

import dataclasses

from adapter_bert_tf.errors import Conflict, InputError
from adapter_bert_tf.sanitize import preview, truncate
from adapter_bert_tf.tasks.own import is_number


def column_numbers(source, header, folder):
    """Returns a dict from field to column number; raises `InputError` for a missing column."""
    columns = dataclasses.asdict(source.columns)
    columns = {field: column for field, column in columns.items() if column is not None}
    if header is None:
        return {field: int(column) for field, column in columns.items()}
    if source.strict:  # Spreadsheets leave spaces around names.
        header = [name.strip() for name in header]
        columns = {
            field: column if isinstance(column, int) else column.strip()
            for field, column in columns.items()
        }
    if source.optional_label and columns.get("label") not in header:
        columns.pop("label", None)
    location = f"{source.location(folder)}, line 1"
    return {field: column_number(column, header, location) for field, column in columns.items()}


def check_columns(label_cells, source, header, rows, columns, path):
    """Raises `InputError` if a column is used twice, or the header looks like data."""
    numbers = [columns[field] for field in ("text_a", "text_b", "label") if field in columns]
    if len(set(numbers)) < len(numbers):
        raise Conflict(
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
            f"{path}, line 1: the header has {preview(first)} in the label column, as other rows "
            "do. Set header=False if the file has no header; otherwise give the columns by name.",
            "header=False",
        )


def column_number(column, header, location):
    """Returns the number of a column given by name or number, as an int or a text."""
    number = int(column) if is_number(str(column)) else None
    received = truncate(str([name[:80] for name in header[:30]]), 600)
    if header.count(column) > 1:
        raise InputError(
            f"{location}: {header.count(column)} columns have the name {preview(column)}. Rename "
            f"them, or give the column by number. Received: {received}"
        )
    if column not in header:
        if number is not None:
            return number
        message = f"{location}: the header has no column {preview(column)}. Received: {received}."
        if header[0].startswith("sep="):
            raise InputError(f"{message} The first line is an instruction to Excel: remove it.")
        if f'"{column}"' in header:
            raise InputError(f"{message} If cells are quoted, pass quoted=True.", "quoted=True")
        raise InputError(f"{message} Check the name and delimiter.", "delimiter")
    if number is not None and number < len(header) and header.index(column) != number:
        raise InputError(
            f"{location}: {preview(column)} is the name of column {header.index(column)} and "
            f"the number of another. Rename it. Received: {received}"
        )
    return header.index(column)
