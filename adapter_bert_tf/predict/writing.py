"""Table writer: rows with their answers as more columns."""

import contextlib
import csv
import gzip
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import IO, Any, Protocol

from adapter_bert_tf.data.tables.rows import Row, cell_text, column_keys
from adapter_bert_tf.data.tables.stream import TableFormat
from adapter_bert_tf.errors import Unsupported
from adapter_bert_tf.sanitize import format_json, preview


class Head(Protocol):
    """What a writer knows of a table: its columns, as `Layout` has them, and its format."""

    @property
    def names(self) -> Sequence[str] | None: ...

    @property
    def width(self) -> int: ...

    @property
    def format(self) -> TableFormat: ...


class Writer(Protocol):
    """Writes rows with new cells, such as a row's key and its answer."""

    def problem(self, row: Row) -> str | None:
        """Why the file cannot hold a row, as a sentence; None if it can."""

    def write(self, row: Row, new: Sequence[Any]) -> None:
        """Writes a row; one with a problem loses what the file cannot hold."""


def fill_empty(cells: Iterable[Any]) -> list[Any]:
    """The cells, with an empty text for None."""
    return ["" if cell is None else cell for cell in cells]


def unused_names(names: Sequence[str], taken: Collection[str]) -> list[str]:
    """The names, with `predicted_` before those that the table has already."""
    unused = []
    for name in names:
        while name in taken:
            name = f"predicted_{name}"
        unused.append(name)
    return unused


@contextlib.contextmanager
def open_writer(
    path: str, file_format: TableFormat, table: Head, new_names: Sequence[str]
) -> Iterator[Writer]:
    """Yields a writer of the rows of a table, locally; `new_names` are those of the new cells."""
    with open_text(path, file_format.gzipped) as file:
        if file_format.extension == ".jsonl":
            yield _ObjectWriter(file, new_names)
        else:
            yield _CellWriter(file, file_format, table, new_names)


@contextlib.contextmanager
def open_text(path: str, gzipped: bool) -> Iterator[IO[str]]:
    """Opens a file to write; equal texts become equal bytes, also packed."""
    options: Any = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
    if not gzipped:
        with open(path, "w", **options) as file:
            yield file
        return
    with (
        open(path, "wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, **options) as file,
    ):
        yield file


def surplus_keys(row: Row, columns: Collection[str]) -> str | None:
    """Why a file with these columns cannot hold a row, as a sentence; None if it can."""
    if other := row.values.keys() - set(columns):
        return (
            f"The first rows have no {preview(sorted(other))}, so there is no column for it. "
            "Write .jsonl instead."
        )
    return None


class _ObjectWriter:
    """Writes JSON lines. New cells are renamed in a row that has their names."""

    def __init__(self, file: IO[str], new_names: Sequence[str]) -> None:
        self._file, self._new_names = file, new_names

    def problem(self, row: Row) -> str | None:
        return None

    def write(self, row: Row, new: Sequence[Any]) -> None:
        names = unused_names(self._new_names, row.values)
        values = row.values | dict(zip(names, new, strict=True))
        self._file.write(format_json(values) + "\n")


class _CellWriter:
    """Writes CSV and TSV. In plain cells a space replaces a delimiter or a line end."""

    def __init__(
        self, file: IO[str], file_format: TableFormat, table: Head, new_names: Sequence[str]
    ) -> None:
        self._file, self._format = file, file_format
        self._columns = column_keys(table.names, table.width)
        # A plain table may hold carriage returns within its lines.
        ends = "\n" if table.format.is_plain else "\n\r"
        self._reserved = "" if file_format.quoted else file_format.delimiter + ends
        self._spaces = str.maketrans(dict.fromkeys(self._reserved, " "))
        self._quoting = [
            csv.writer(file, delimiter=file_format.delimiter, lineterminator="\n", quoting=quoting)
            for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        ]
        if table.names is not None and file_format.header:
            names = [*table.names, *new_names]
            if problem := self._unwritable(names):
                raise Unsupported(problem)
            self._write(names)

    def problem(self, row: Row) -> str | None:
        return surplus_keys(row, self._columns) or self._unwritable(self._own(row))

    def write(self, row: Row, new: Sequence[Any]) -> None:
        self._write([*self._own(row), *map(_cell, new)])

    def _own(self, row: Row) -> list[str]:
        """The values of a row as texts, in the order of the table's columns."""
        return [_cell(row.values.get(name, "")) for name in self._columns]

    def _unwritable(self, cells: Sequence[str]) -> str | None:
        for cell in cells:
            if any(character in cell for character in self._reserved):
                return (
                    f"A cell of a {self._format.extension} file cannot hold its delimiter or a "
                    f"line end. Write .csv or .jsonl instead. Received: {preview(cell)}."
                )
        return None

    def _write(self, cells: Sequence[Any]) -> None:
        if self._format.quoted:
            # `csv` leaves a carriage return unquoted, though readers end a row there.
            has_return = any("\r" in str(cell) for cell in cells)
            self._quoting[has_return].writerow(cells)
            return
        texts = [str(cell).translate(self._spaces) for cell in cells]
        self._file.write(self._format.delimiter.join(texts) + "\n")


def _cell(value: Any) -> str:
    """A value of a row or an answer; lists and dicts as JSON."""
    if isinstance(value, list | dict):
        return format_json(value)
    return cell_text(value)
