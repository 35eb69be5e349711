"""Rows of a table, written again with the cells of their answers."""

import contextlib
import csv
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, TypeAlias

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.predict.file_formats import Form
from adapter_bert_tf.predict.output_columns import filled
from adapter_bert_tf.predict.reading import Record, Table
from adapter_bert_tf.sanitize import preview

Write: TypeAlias = Callable[[Record, Sequence[Any]], None]


@contextlib.contextmanager
def open_written(path: str, form: Form, table: Table, more: Sequence[str]) -> Iterator[Write]:
    """Yields a function that writes a record of a table and the cells of its answer.

    Args:
      path: local.
      form: what to write.
      table: whose records these are.
      more: names of the columns of answers.
    """
    opened: Any = gzip.open if form.packed else open
    with opened(path, "wt", encoding="utf-8", errors="backslashreplace", newline="") as file:
        if form.ending == ".jsonl":
            yield lambda record, cells: _write_object(
                file, record, dict(zip(more, cells, strict=True))
            )
            return
        write = _delimited(file, form)
        if table.names is not None and form.header:
            write([*table.names, *more])
        width = len(table.names) if table.names else 0
        yield lambda record, cells: write([*_in_columns(record, table, width), *filled(cells)])


def _write_object(file: IO[str], record: Record, answer: dict[str, Any]) -> None:
    names = record.names or [str(number) for number in range(len(record.cells))]
    row = dict(zip(names, record.cells, strict=False)) | answer
    file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _in_columns(record: Record, table: Table, width: int) -> list[Any]:
    """The cells of a record in the table's columns."""
    cells = list(record.cells)
    if table.form.ending == ".jsonl":
        values = dict(zip(record.names or (), cells, strict=True))
        if other := values.keys() - set(table.names or ()):
            raise InputError(
                f"{table.path}, line {record.line}: the first row has no {preview(sorted(other))}, "
                "so there is no column for it. Write .jsonl instead."
            )
        cells = [values.get(name) for name in table.names or ()]
        return [c if isinstance(c, str) else "" if c is None else json.dumps(c) for c in cells]
    return (cells + [""] * (width - len(cells)))[: width or None]


def _delimited(file: IO[str], form: Form) -> Callable[[Sequence[Any]], None]:
    if form.quoted:
        plain, all_quoted = (
            csv.writer(file, delimiter=form.delimiter, lineterminator="\n", quoting=quoting)
            for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        )

        def write_quoted(cells: Sequence[Any]) -> None:
            # `csv` quotes a line feed, and leaves a carriage return, which ends a row all the same.
            writer = all_quoted if any("\r" in str(cell) for cell in cells) else plain
            writer.writerow(cells)

        return write_quoted

    def write(cells: Sequence[Any]) -> None:
        texts = [str(cell) for cell in cells]
        if wrong := next((t for t in texts if form.delimiter in t or "\n" in t or "\r" in t), None):
            raise InputError(
                f"A cell of a {form.ending} file cannot hold its delimiter or a line end. Write "
                f".csv or .jsonl instead. Received: {preview(wrong)}"
            )
        file.write(form.delimiter.join(texts) + "\n")

    return write
