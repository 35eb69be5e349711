"""Streaming reader of tables larger than memory: CSV, TSV, JSON lines and Parquet."""

import contextlib
import csv
import dataclasses
import gzip
import io
import itertools
import os
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from adapter_bert_tf import storage
from adapter_bert_tf.data.tables.delimiters import (
    find_delimiter,
    is_blank,
    line_end,
    read_beginning,
    split_rows,
    utf16_hint,
    warn_of_delimiter,
)
from adapter_bert_tf.data.tables.rows import (
    Row,
    header_of,
    json_row,
    object_names,
    parquet_row,
    row_of,
)
from adapter_bert_tf.errors import Damaged, InputError, Unavailable
from adapter_bert_tf.sanitize import truncate
from adapter_bert_tf.tasks.own import delimiter_of

CELLS = (".csv", ".tsv")
WRITTEN = (*CELLS, ".jsonl")
OBJECTS = (".jsonl", ".parquet")  # Each row is an object, whose keys name the columns.
AT_ONCE = 1024  # Rows of a Parquet file in memory.


@dataclasses.dataclass(frozen=True)
class TableFormat:
    """Format of a table."""

    extension: str  # `.csv`, `.tsv`, `.jsonl` or `.parquet`.
    gzipped: bool
    delimiter: str  # Between cells; ignored for objects.
    header: bool  # Whether the first row names the columns.
    quoted: bool  # Whether cells may be quoted.
    encoding: str

    @property
    def is_plain(self) -> bool:
        """Whether a row is a line of cells without quotes."""
        return self.extension in CELLS and not self.quoted


def extension_of(path: str) -> str:
    """`.csv` for `a.csv` and `a.CSV.gz`."""
    return os.path.splitext(path.removesuffix(".gz"))[1].lower()


def table_format(
    path: str,
    delimiter: str | None = None,
    header: bool = True,
    quoted: bool | None = None,
    encoding: str = "utf-8",
    written: bool = False,
) -> TableFormat:
    """The format of a file to read, or to be `written`, by its name.

    Raises `InputError` for another extension.

    `delimiter` is one character; None: a comma in `.csv`, a tab in `.tsv`. `header` is whether the
    first row names the columns, `quoted` whether cells may be quoted; None: in `.csv`.
    """
    extension = extension_of(path)
    known = WRITTEN if written else (*WRITTEN, ".parquet")
    if extension not in known or (extension == ".parquet" and path.endswith(".gz")):
        raise InputError(
            f"{'An output' if written else 'A table'}'s name ends with {', '.join(known)}, and .gz "
            f"may follow on texts. Received: {path!r}"
        )
    return TableFormat(
        extension,
        path.endswith(".gz"),
        delimiter_of(delimiter, extension.removeprefix(".")),
        header,
        extension == ".csv" if quoted is None else quoted,
        "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding,
    )


def output_format(path: str, source: TableFormat, header: bool) -> TableFormat:
    """The format of an output: with its source's delimiter and quotes, if their names end alike.

    A .csv is quoted always, as answers hold commas.
    """
    same = extension_of(path) == source.extension
    delimiter, quoted = (source.delimiter, source.quoted or None) if same else (None, None)
    return table_format(path, delimiter, header, quoted, written=True)


def with_found_delimiter(path: str, file_format: TableFormat) -> TableFormat:
    """The format of a table with column names, with the delimiter that the file itself shows."""
    if file_format.extension in OBJECTS or not file_format.header:
        return file_format
    beginning = read_beginning(path, file_format.encoding)
    found = find_delimiter(beginning, file_format.delimiter, file_format.quoted)
    if found != file_format.delimiter:
        warn_of_delimiter(path, found)
    return dataclasses.replace(file_format, delimiter=found)


class Table:
    """Rows of an open file; iterating reads it once.

    `raw` are the bytes on the disk, `lines` the decoded text, None for Parquet. `names` are the
    column names, of JSON lines the keys of its first rows (`object_names`); None without a header.
    `width` is the number of cells in the first row, 0 of objects. `num_rows` counts the rows read.
    """

    def __init__(
        self, path: str, file_format: TableFormat, raw: IO[bytes], lines: IO[str] | None
    ) -> None:
        self.path, self.format, self._raw = path, file_format, raw
        self.names: list[str] | None = None
        self.num_rows = self.width = self._line = 0
        if lines is None:
            rows = self._parquet_rows()
        else:
            is_json = file_format.extension == ".jsonl"
            rows = self._json_rows(lines) if is_json else self._cell_rows(lines)
        self._rows = self._read(rows)
        self._first = next(self._rows, None)  # Reads the names, too.

    @property
    def is_empty(self) -> bool:
        """Whether there are neither rows nor column names."""
        return self._first is None and self.names is None

    def __iter__(self) -> Iterator[Row]:
        row = self._first
        while row is not None:
            self.num_rows += 1
            yield row
            row = next(self._rows, None)

    def fraction_read(self) -> float:
        """How much of the file is read, 0 to 1."""
        size = os.fstat(self._raw.fileno()).st_size
        return self._raw.tell() / size if size else 1.0

    def _read(self, rows: Iterator[Row]) -> Iterator[Row]:
        with reading(self.path, self._raw, lambda: self._line):
            yield from rows

    def _cell_rows(self, lines: IO[str]) -> Iterator[Row]:
        """Rows of CSV and TSV; a blank line is a row if there is one column and a row follows."""
        blank = list[int]()
        for line, cells in split_rows(lines, self.format.delimiter, self.format.quoted):
            if is_blank(cells, self.format.quoted):
                blank += [line] if self.width == 1 else []
                continue
            self._line = line
            is_header = self.format.header and not self.width
            self.width = self.width or len(cells)
            if is_header:
                self.names = header_of(self.path, cells)
                continue
            for number in blank:
                yield row_of(self.names, self.width, number, [""])
            blank.clear()
            yield row_of(self.names, self.width, line, cells)
        if self.format.header and not self.width:
            raise Damaged(f"{self.path} is empty: it has no column names.")

    def _parquet_rows(self) -> Iterator[Row]:
        """Rows of a Parquet file; the number of a row stands for its line."""
        pyarrow = import_pyarrow()
        try:
            file = pyarrow.parquet.ParquetFile(self._raw)
            self.names = list(file.schema_arrow.names)
            for batch in file.iter_batches(AT_ONCE):
                for values in batch.to_pylist():
                    self._line += 1
                    yield parquet_row(self._line, values)
        except (pyarrow.ArrowException, OSError) as error:
            reason = truncate(str(error), 200)
            raise Damaged(f"{self.path} is damaged, no Parquet file: {reason}") from error

    def _json_rows(self, lines: IO[str]) -> Iterator[Row]:
        rows, first = itertools.tee(self._objects(lines))
        self.names = object_names(first)
        del first  # It would keep all rows in memory.
        if self.names is None and (row := next(rows, None)):
            raise Damaged(
                f"{self.path}: no line of it is a JSON object. Line {row.line}: {row.error}"
            )
        yield from rows

    def _objects(self, lines: IO[str]) -> Iterator[Row]:
        for number, line in enumerate(lines, 1):
            if line.strip():
                self._line = number
                yield json_row(number, line)


@contextlib.contextmanager
def reading(path: str, raw: IO[bytes], last_line: Callable[[], int]) -> Iterator[None]:
    """Turns errors of a file of text into `InputError`; `last_line` is the last one read, or 0."""
    try:
        yield
    except (UnicodeError, csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        line = last_line()
        place = f"after line {line}: " if line else "in the first line: "
        place = "" if isinstance(error, csv.Error) else place  # The message names the line.
        raw.seek(0)
        hint = utf16_hint(raw.read(2))
        raise Damaged(
            f"{path}, {place}{truncate(str(error), 200)}. Is the file complete, and are "
            f"encoding{hint} and quoted right?",
            "encoding",
            "quoted",
        ) from error


def import_pyarrow() -> Any:
    """Imports pyarrow with its reader of Parquet. Raises `InputError` if it is missing."""
    try:
        import pyarrow.parquet  # Takes half a second.
    except ImportError as error:
        raise Unavailable("Parquet files need pyarrow: pip install pyarrow.") from error
    return pyarrow


@contextlib.contextmanager
def open_table(path: str, file_format: TableFormat) -> Iterator[Table]:
    """Yields the open `Table` of a file. Raises `InputError`."""
    if file_format.extension == ".parquet":
        (local,) = storage.cached(path)
        with open(local, "rb") as raw:
            yield Table(path, file_format, raw, None)
        return
    with open_lines(path, file_format) as (raw, lines):
        yield Table(path, file_format, raw, lines)


@contextlib.contextmanager
def open_lines(path: str, file_format: TableFormat) -> Iterator[tuple[IO[bytes], IO[str]]]:
    """Yields the bytes on the disk and the decoded text of a file. Raises `InputError`."""
    (local,) = storage.cached(path)
    beginning = read_beginning(local, file_format.encoding)
    newline = line_end(beginning, file_format.quoted and file_format.extension != ".jsonl")
    with open(local, "rb") as raw:
        data: Any = gzip.GzipFile(fileobj=raw) if file_format.gzipped else raw
        try:
            lines = io.TextIOWrapper(data, file_format.encoding, newline=newline)
        except (LookupError, ValueError) as error:  # Also for encodings of bytes, such as hex.
            raise InputError(
                f"Unknown encoding {file_format.encoding!r} for {path}.", "encoding"
            ) from error
        with lines:
            yield raw, lines
