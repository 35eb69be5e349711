"""Rows of a source in blocks, so that tables of any size are read in constant memory."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from adapter_bert_tf import storage
from adapter_bert_tf.data.tables.delimiters import (
    first_rows,
    is_blank,
    read_beginning,
    split_rows,
)
from adapter_bert_tf.data.tables.files import object_cells, require_file
from adapter_bert_tf.data.tables.malformed_rows import Place, RowFindings, Rows
from adapter_bert_tf.data.tables.rows import Row
from adapter_bert_tf.data.tables.stream import (
    OBJECTS,
    TableFormat,
    extension_of,
    import_pyarrow,
    open_lines,
    open_table,
    reading,
    table_format,
)
from adapter_bert_tf.errors import Damaged, InputError
from adapter_bert_tf.sanitize import parse_json, preview
from adapter_bert_tf.tasks.task import Source

ROWS, CHARACTERS = 1024, 1 << 22  # Of a block, about, at most.
LONGEST = 1 << 24  # Characters of a row. A quote that is never closed takes the rest of the file.
PACKED, UNPACKED = (".gz", ".parquet"), 4  # How many times larger packed files are, about.


class Block(NamedTuple):
    """Some rows of a source, with the header of all, and the share of its bytes that are read."""

    header: list[str] | None
    rows: Rows
    share: float


def read_blocks(source: Source, folder: str, findings: RowFindings) -> Iterator[Block]:
    """Yields all rows of a source by the rules of `files.read_table`; a block is in memory.

    The columns of JSON lines are the keys of their first rows. Raises `InputError`.
    """
    require_one_layout(source)
    paths = source.files or (require_file(source, folder),)
    sizes = [storage.stat(path).length for path in paths]
    done, total = 0, max(sum(sizes), 1)
    header: list[str] | None = None
    for path, size in zip(paths, sizes, strict=True):
        is_object = extension_of(path) in OBJECTS
        read = _object_blocks(path, source, header) if is_object else None
        for block in read or _cell_blocks(path, source, findings):
            header = block.header
            yield block._replace(share=(done + block.share * size) / total)
        done += size


def unpacked_size(source: Source, folder: str) -> int:
    """The bytes of a source's files, unpacked, about. Raises `InputError` if there is none."""
    paths = source.files or (require_file(source, folder),)
    return sum(
        storage.stat(p).length * (UNPACKED if p.lower().endswith(PACKED) else 1) for p in paths
    )


def _object_blocks(path: str, source: Source, header: list[str] | None) -> Iterator[Block]:
    """Yields the rows of a file; `header` is that of the files before it."""
    with open_table(path, table_format(path, encoding=source.encodings[0])) as table:
        rows: list[Row] = []

        def block(share: float) -> Block:
            names = header or table.names or []
            return Block(names, object_cells(source, names, [(path, row) for row in rows]), share)

        for row in table:
            rows.append(row)
            if len(rows) == ROWS:
                some = block(table.fraction_read())
                yield some
                header, rows = some.header, []
        if rows:
            yield block(1.0)


def _cell_blocks(path: str, source: Source, findings: RowFindings) -> Iterator[Block]:
    """Yields the rows of a file; a block has the share of this file."""
    form = _format_of(path, source)
    with open_lines(path, form) as (raw, text):
        size = max(os.fstat(raw.fileno()).st_size, 1)
        lines = _Lines(text)
        with reading(path, raw, lambda: lines.row):
            rows = _without_blank(path, lines.rows(form), form.quoted, findings)
            first = next(rows, None)
            if first is None:
                raise Damaged(f"{path} is empty.")
            header = first[1] if form.header else None
            block: Rows = [] if form.header else [first]
            characters = 0
            for place, cells in rows:
                block.append((place, cells))
                characters += sum(map(len, cells))
                if len(block) >= ROWS or characters > CHARACTERS:
                    yield Block(header, block, raw.tell() / size)
                    block, characters = [], 0
            yield Block(header, block, 1.0)


def _format_of(path: str, source: Source) -> TableFormat:
    """How a file of cells is read."""
    encoding, header = source.encodings[0], source.has_header
    return table_format(path, source.delimiter, header, source.quoted, encoding)


class _Lines(Iterator[str]):
    """Lines of a text, of which a row may not hold too many; `row` is the line of the last row."""

    def __init__(self, text: IO[str]) -> None:
        self._text, self._size, self.row = text, 0, 0

    def __next__(self) -> str:
        line = self._text.readline(LONGEST + 1)
        self._size += len(line)
        if self._size > LONGEST:
            raise csv.Error(
                f"the row after line {self.row} has more than {LONGEST:,} characters, as if a "
                "quotation mark were missing"
            )
        if not line:
            raise StopIteration
        return line

    def rows(self, form: TableFormat) -> Iterator[tuple[int, list[str]]]:
        """Yields the line and the cells of each row. Raises `csv.Error`."""
        for number, cells in split_rows(self, form.delimiter, form.quoted):  # type: ignore[arg-type]
            self._size, self.row = 0, number
            yield number, cells


def _without_blank(
    path: str, rows: Iterator[tuple[int, list[str]]], quoted: bool, findings: RowFindings
) -> Iterator[tuple[Place, list[str]]]:
    """Leaves out blank lines of a quoted table, counting them, and those at the end of any."""
    blank: list[int] = []
    begun = False
    for number, cells in rows:
        if is_blank(cells, quoted):
            blank.append(number)
            continue
        if not quoted:
            yield from (((path, line), [""]) for line in blank)
        elif begun and blank:
            before = findings.blank_lines.get(path, 0)
            findings.blank_lines[path] = before + len(blank)
        blank.clear()
        begun = True
        yield (path, number), cells


def require_one_layout(source: Source) -> None:
    """Raises `InputError` if a source's files have different columns; reads their beginnings."""
    if len(source.files) < 2:
        return
    first, *others = source.files
    expected = _columns_of(first, source)
    for path in others:
        extension = extension_of(path)
        if extension != extension_of(first):
            raise InputError(
                f"{source.file} has {extension_of(first)} and {extension} files: {first}, {path}. "
                "Give files of one layout."
            )
        if (columns := _columns_of(path, source)) != expected:
            raise InputError(
                f"{path} has {preview(columns)}, and {first} has {preview(expected)}. Give files "
                "of one layout, with the same columns in the same order."
            )


def _columns_of(path: str, source: Source) -> Any:
    """What must be equal in all files: the names of the columns, or how many there are."""
    if extension_of(path) == ".parquet":
        return _parquet_columns(path)
    beginning = read_beginning(path, source.encodings[0])
    if extension_of(path) == ".jsonl":
        return _needed_keys(beginning, source)
    names = first_rows(beginning, source.delimiter, source.quoted)[0]
    return [name.strip() for name in names] if source.has_header else f"{len(names)} columns"


def _parquet_columns(path: str) -> list[str]:
    pyarrow = import_pyarrow()
    (local,) = storage.cached(path)
    try:
        schema = pyarrow.parquet.read_schema(local)
    except (pyarrow.ArrowException, OSError) as error:
        raise Damaged(f"{path} is damaged, no Parquet file: {str(error)[:200]}") from error
    return [f"{field.name}: {field.type}" for field in schema]


def _needed_keys(beginning: str, source: Source) -> list[str]:
    """Which of the columns of texts the first object of a file has."""
    line = next((line for line in beginning.splitlines() if line.strip()), "{}")
    needed = [str(c) for c in (source.columns.text_a, source.columns.text_b) if c is not None]
    try:
        value = parse_json(line)
    except ValueError:  # Reading the rows raises the error.
        return needed
    return [name for name in needed if name in value] if isinstance(value, dict) else needed
