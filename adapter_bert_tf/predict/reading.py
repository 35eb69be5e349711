"""Tables read row by row, never whole in memory."""

import codecs
import contextlib
import csv
import dataclasses
import gzip
import io
import itertools
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.predict.file_formats import Form
from adapter_bert_tf.sanitize import parse_json, preview, truncate


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """A row of a table.

    Args:
      line: its number in the file, from 1.
      names: of the columns; None without a header.
      cells: texts, or the values of a JSON object, in the order of the names.
      fault: why the row cannot be read, in which case it has no cells.
    """

    line: int
    names: Sequence[str] | None
    cells: Sequence[Any]
    fault: str | None = None

    def text(self, column: str | int) -> str | None:
        """The text in a column, by name or number; None if there is none."""
        if isinstance(column, str):
            if self.names is None or column not in self.names:
                return None
            column = self.names.index(column)
        value = self.cells[column] if column < len(self.cells) else None
        return value if value is None or isinstance(value, str) else str(value)


class Table:
    """The rows of an open file; iterating reads it once.

    Args:
      path: of the file, for messages.
      form: `Form`.
      raw: the file as bytes as it lies on the disk.
      lines: the same as text.
      size: in bytes on the disk.

    Attributes:
      names: of the columns; None without a header.
      count: rows read so far.
      bad: numbers of the lines that were skipped.
      empty: numbers of the lines with a text of nothing, which is answered all the same.
    """

    def __init__(self, path: str, form: Form, raw: IO[bytes], lines: IO[str], size: int) -> None:
        self.path, self.form, self._raw, self._size = path, form, raw, size
        self.names: list[str] | None = None
        self.count, self.bad, self.empty = 0, list[int](), list[int]()
        read = self._objects if form.ending == ".jsonl" else self._cells
        self._rows = self._guarded(read(lines))
        if form.ending == ".jsonl":
            self.names = self._names_of_objects()
        elif form.header:
            self.names = self._named(next(self._rows, None))
        self._first = next(self._rows, None)

    @property
    def is_empty(self) -> bool:
        """Whether it has neither rows nor names of columns."""
        return self._first is None and self.names is None

    def __iter__(self) -> Iterator[Record]:
        record = self._first
        while record is not None:
            self.count += 1
            yield (
                record
                if record.names is not None
                else dataclasses.replace(record, names=self.names)
            )
            record = next(self._rows, None)

    def share_read(self) -> float:
        """The share of the file that is read, from 0 to 1."""
        return self._raw.tell() / self._size if self._size else 1.0

    def _named(self, header: Record | None) -> list[str]:
        if header is None:
            raise InputError(f"{self.path} is empty: not even the names of the columns are there.")
        names = [name.strip() for name in header.cells]
        if len(set(names)) < len(names):
            raise InputError(f"{self.path}: two columns have one name. Received: {preview(names)}")
        return names

    def _names_of_objects(self) -> list[str] | None:
        """The names in the first row that is an object; None of an empty file."""
        before = list[Record]()
        for record in self._rows:
            before.append(record)
            if record.fault is None:
                break
        self._rows = itertools.chain(before, self._rows)
        if before and before[-1].fault:
            raise InputError(
                f"{self.path}: no line of it is a JSON object. Line {before[0].line}: "
                f"{before[0].fault}"
            )
        return list(before[-1].names or ()) if before else None

    def _cells(self, lines: IO[str]) -> Iterator[Record]:
        """Rows of cells; a blank line is one if there is one column, and others follow."""
        rows = _quoted(lines, self.form) if self.form.quoted else _plain(lines, self.form)
        width, blank = 0, list[int]()
        for line, cells in rows:
            if not any(cells) and len(cells) < 2:
                blank += [line] if width == 1 else []
                continue
            width = width or len(cells)
            yield from (Record(number, None, [""]) for number in blank)
            blank = []
            yield Record(line, None, cells)

    def _objects(self, lines: IO[str]) -> Iterator[Record]:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                value = parse_json(line, distinct=True)
                fault = f"a row is a JSON object. Received: {preview(value)}."
            except ValueError as error:
                value, fault = None, f"no JSON: {error}."
            if isinstance(value, dict):
                yield Record(number, list(value), list(value.values()))
            else:
                yield Record(number, [], [], fault)

    def _guarded(self, rows: Iterator[Record]) -> Iterator[Record]:
        """The rows; what goes wrong while reading them is an `InputError`."""
        line = 0
        try:
            for record in rows:
                line = record.line
                yield record
        except (UnicodeError, csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
            place = f"after line {line}" if line else "in the first line"
            raise InputError(
                f"{self.path}, {place}: {truncate(str(error), 200)}. Is it whole, and are "
                f"encoding{_hint(self._raw)} and quoted right?",
                "encoding",
                "quoted",
            ) from error


def _hint(raw: IO[bytes]) -> str:
    """The encoding that the first bytes of a file are the mark of, for a message."""
    raw.seek(0)
    marked = raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return " (it begins as utf-16 does)" if marked else ""


@contextlib.contextmanager
def open_table(path: str, form: Form) -> Iterator[Table]:
    """Yields the open `Table` of a file. Raises `InputError`."""
    (local,) = storage.cached(path)
    csv.field_size_limit(2**31 - 1)
    with contextlib.ExitStack() as stack:
        raw: IO[bytes] = stack.enter_context(open(local, "rb"))
        data: Any = stack.enter_context(gzip.open(raw)) if form.packed else raw
        # Only a line feed ends a line of a plain table: texts hold form feeds and the like.
        newline = "" if form.quoted and form.ending != ".jsonl" else "\n"
        try:
            lines = io.TextIOWrapper(data, form.encoding, newline=newline)
        except (LookupError, ValueError) as error:  # Also of encodings that are none of text.
            raise InputError(
                f"Unknown encoding {form.encoding!r} for {path}.", "encoding"
            ) from error
        yield Table(path, form, raw, stack.enter_context(lines), os.path.getsize(local))


def _plain(lines: IO[str], form: Form) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        yield number, line.removesuffix("\n").removesuffix("\r").split(form.delimiter)


def _quoted(lines: IO[str], form: Form) -> Iterator[tuple[int, list[str]]]:
    reader, start = csv.reader(lines, delimiter=form.delimiter, strict=True), 1
    for cells in reader:
        yield start, cells
        start = reader.line_num + 1
