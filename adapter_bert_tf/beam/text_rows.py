"""Rows of text files with their places, so that a worker can begin in the middle of a file."""

from __future__ import annotations

import collections
import csv
import dataclasses
import gzip
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from adapter_bert_tf.data.tables.delimiters import (
    is_blank,
    line_end,
    read_beginning,
    utf16_hint,
)
from adapter_bert_tf.data.tables.rows import Row, header_of, json_row, object_names, row_of
from adapter_bert_tf.data.tables.stream import TableFormat
from adapter_bert_tf.errors import Damaged, InputError, Unsupported
from adapter_bert_tf.sanitize import truncate

# Bytes of a row. A quote that is never closed would take the rest of the file, and memory for it.
LONGEST = 1 << 20
TEXT = ".txt"  # A text a line.
TEXT_NAME = "text"  # The column of such a file.
MARK = b"\xef\xbb\xbf"  # A byte order mark.


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a row begins: bytes of the unpacked file before it (or rows), and its line, from 1."""

    offset: int = 0
    line: int = 1


@dataclasses.dataclass(frozen=True)
class Layout:
    """What a worker that begins in the middle must know of the beginning of a table.

    `names` are those of the columns, None without a header, () of a file without rows; `start` is
    the place below the header, `width` the number of cells in the first row of a table, and
    `schema` has the types of Parquet's columns.
    """

    names: tuple[str, ...] | None
    start: Place
    width: int = 0
    schema: Any = None


class _TooLong(Exception):
    """A row has more than `LONGEST` bytes."""


class _Lines(Iterator[str]):
    """Lines of an unpacked file, from a place on; `place` is that of the next line.

    Bytes that are not of the encoding become lone surrogates.
    """

    def __init__(self, file: BinaryIO, encoding: str, quoted: bool) -> None:
        self._file, self._encoding, self._quoted = file, encoding, quoted
        self.go_to(Place())

    def go_to(self, place: Place) -> None:
        """Makes the line at a place the next one."""
        self._file.seek(place.offset)
        self.place, self._parts = place, collections.deque[bytes]()
        self.begin()

    def begin(self) -> None:
        """A row begins with the next line."""
        self._begin = self._second = self.place
        self._later = list[bytes]()  # Lines of the row behind its first one.

    def retry(self) -> None:
        """Makes the second line of the row the next one.

        The file is not read again: a packed one would be unpacked from its beginning.
        """
        self._parts.extendleft(reversed(self._later))
        self.place, self._later = self._second, []

    def __next__(self) -> str:
        is_first = self.place == self._begin
        line = self._parts.popleft() if self._parts else self._read()
        is_marked = self.place.offset == 0 and line.startswith(MARK)
        self.place = Place(self.place.offset + len(line), self.place.line + 1)
        if not is_first:
            self._later.append(line)
        elif len(line) > LONGEST:
            self._skip_line(line)
        self._second = self.place if is_first else self._second
        if self.place.offset - self._begin.offset > LONGEST:
            raise _TooLong
        return self._decoded(line.removeprefix(MARK) if is_marked else line)

    def _read(self) -> bytes:
        line = self._file.readline(LONGEST + 1)
        if not line:
            raise StopIteration
        if self._quoted and b"\r" in line:  # Which ends a line also without a line feed.
            line, *others = re.split(rb"(?<=\r)(?!\n|\Z)", line)
            self._parts.extend(others)
        return line

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode(self._encoding)
        except UnicodeDecodeError:
            return line.decode(self._encoding, "surrogateescape")

    def _skip_line(self, line: bytes) -> None:
        """Goes behind a line that is too long."""
        while not line.endswith(b"\n") and (line := self._file.readline(LONGEST)):
            self.place = Place(self.place.offset + len(line), self.place.line)


def _is_objects(form: TableFormat) -> bool:
    return form.extension == ".jsonl"


class TextRows:
    """Rows of an open text file: CSV, TSV, JSON lines, or a text a line.

    A row that cannot be read is a `Row` with an error; the rows after it are read. A quote that is
    never closed costs its line only.

    Args:
      path: of the file, for messages.
      form: how it is read.
      file: of its bytes, plain or packed.
    """

    def __init__(self, path: str, form: TableFormat, file: BinaryIO) -> None:
        self.path, self.form = path, form
        self._encoding = _line_encoding(path, form)
        unpacked: Any = gzip.GzipFile(fileobj=file) if form.gzipped else file
        self._lines = _Lines(unpacked, self._encoding, form.quoted)

    def layout(self) -> Layout:
        """Reads the beginning. Raises `InputError` for an empty file, or column names in doubt."""
        if self.form.extension == TEXT:
            return Layout((TEXT_NAME,), Place())
        if _is_objects(self.form):
            return self._layout_of_objects()
        for place, cells, error in self._records(Place()):
            if error:
                raise Damaged(f"{self.path}, line {place.line}: {error}", "quoted", "encoding")
            if is_blank(cells, self.form.quoted):
                continue
            if not self.form.header:
                return Layout(None, place, len(cells))
            self._require_decoded(cells)
            names = tuple(header_of(self.path, cells))
            return Layout(names, self._lines.place, len(cells))
        raise Damaged(f"{self.path} is empty.")

    def _layout_of_objects(self) -> Layout:
        names = object_names(row for _, row in self._objects(Place()))
        if names is not None:
            return Layout(tuple(names), Place())
        for _, row in self._objects(Place()):
            raise Damaged(f"{self.path}: no line of it is a JSON object. {row.error}")
        return Layout((), Place())  # Empty files are usual among the parts of a large table.

    def _require_decoded(self, cells: list[str]) -> None:
        if error := self._checked(Row(1, {}), "".join(cells)).error:
            hint = utf16_hint("".join(cells).encode("utf-8", "surrogateescape"))
            raise Damaged(f"{self.path}, in the column names: {error}{hint}", "encoding")

    def read(self, layout: Layout, place: Place) -> Iterator[tuple[Place, Row]]:
        """Yields the place and the row of each row from a place on."""
        if self.form.extension == TEXT:
            yield from self._texts(place)
        elif _is_objects(self.form):
            yield from self._objects(place)
        else:
            yield from self._cell_rows(layout, place)

    def _cell_rows(self, layout: Layout, place: Place) -> Iterator[tuple[Place, Row]]:
        """A blank line is a row if there is one column and a row follows, as for `predict`."""
        blank: list[Place] = []
        for at, cells, error in self._records(place):
            if error:
                yield at, Row(at.line, {}, error)
                continue
            if is_blank(cells, self.form.quoted):
                blank += [at] if layout.width == 1 else []
                continue
            for earlier in blank:
                yield earlier, row_of(layout.names, layout.width, earlier.line, [""])
            blank.clear()
            row = row_of(layout.names, layout.width, at.line, cells)
            yield at, self._checked(row, "".join(cells))

    def _records(self, place: Place) -> Iterator[tuple[Place, list[str], str]]:
        """Yields the place, the cells and what is wrong with each record."""
        lines = self._lines
        lines.go_to(place)
        reader = self._reader()
        while True:
            lines.begin()
            place = lines.place
            try:
                cells = next(reader)
            except StopIteration:
                return
            except _TooLong:
                error = f"it has more than {LONGEST:,} bytes. Is a quote never closed?"
            except csv.Error as wrong:
                error = f"{truncate(str(wrong), 200)}. Are the quotes right?"
            else:
                yield place, cells, ""
                continue
            yield place, [], error
            lines.retry()
            reader = self._reader()

    def _reader(self) -> Iterator[list[str]]:
        if self.form.quoted:
            return csv.reader(self._lines, delimiter=self.form.delimiter, strict=True)
        return (_without_end(line).split(self.form.delimiter) for line in self._lines)

    def _objects(self, place: Place) -> Iterator[tuple[Place, Row]]:
        for at, line in self._plain(place):
            if line is None:
                yield at, Row(at.line, {}, f"it has more than {LONGEST:,} bytes.")
            elif line.strip():
                row = json_row(at.line, line)
                yield at, self._checked(row, line) if row.error is None else row

    def _texts(self, place: Place) -> Iterator[tuple[Place, Row]]:
        for at, line in self._plain(place):
            if line is None:
                yield at, Row(at.line, {}, f"it has more than {LONGEST:,} bytes.")
            elif text := line.strip():
                yield at, self._checked(Row(at.line, {TEXT_NAME: text}), text)

    def _plain(self, place: Place) -> Iterator[tuple[Place, str | None]]:
        """Yields the place and each line; None in place of one that is too long."""
        lines = self._lines
        lines.go_to(place)
        while True:
            lines.begin()
            place = lines.place
            try:
                yield place, next(lines)
            except StopIteration:
                return
            except _TooLong:
                yield place, None

    def _checked(self, row: Row, text: str) -> Row:
        """A row, with an error if its text has bytes that are not of the encoding."""
        if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
            return row
        return Row(row.line, row.values, f"it has bytes that are not {self._encoding}.")


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _line_encoding(path: str, form: TableFormat) -> str:
    """The encoding of single lines. Raises `InputError` where bytes alone show no end of a line."""
    encoding = "utf-8" if form.encoding == "utf-8-sig" else form.encoding
    try:
        is_plain = "a\n,".encode(encoding) == b"a\n,"
    except (LookupError, ValueError) as error:
        raise InputError(f"Unknown encoding {form.encoding!r} for {path}.", "encoding") from error
    beginning = read_beginning(path, form.encoding)
    has_ends = line_end(beginning, quoted=False) == "\n"
    if not is_plain or not has_ends:
        what = "is in UTF-16 or UTF-32" if not is_plain else "has carriage returns alone"
        raise Unsupported(
            f"{path} {what}, and is read in parts, which begin behind a line feed. Convert it to "
            "UTF-8 with line feeds; `adapter-bert predict` reads it as it is."
        )
    return encoding
