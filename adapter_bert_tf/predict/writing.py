"""Table writer: rows with their answers as more columns."""

import contextlib
import csv
import gzip
import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import IO, Any, Protocol, TypeAlias

from adapter_bert_tf.data.tables.rows import Row
from adapter_bert_tf.data.tables.stream import TableFormat
from adapter_bert_tf.errors import InputError, Unsupported
from adapter_bert_tf.sanitize import preview

WriteRow: TypeAlias = Callable[[Row, Sequence[Any]], None]


class Head(Protocol):
    """What a writer knows of a table: its path, for messages, and the names of its columns."""

    @property
    def path(self) -> str: ...

    @property
    def names(self) -> Sequence[str] | None: ...


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
    path: str, file_format: TableFormat, table: Head, answer_names: Sequence[str]
) -> Iterator[WriteRow]:
    """Yields a function that writes a row of `table` and the cells of its answer, locally."""
    with _open_text(path, file_format.gzipped) as file:
        if file_format.extension == ".jsonl":

            def write_object(row: Row, answer: Sequence[Any]) -> None:
                values = row.values | dict(zip(answer_names, answer, strict=True))
                file.write(json.dumps(values, ensure_ascii=False, default=str) + "\n")

            yield write_object
            return
        write = _cell_writer(file, file_format)
        if table.names is not None and file_format.header:
            write([*table.names, *answer_names])
        yield lambda row, answer: write([*_cells(row, table), *map(_answer_cell, answer)])


@contextlib.contextmanager
def _open_text(path: str, gzipped: bool) -> Iterator[IO[str]]:
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


def _cells(row: Row, table: Head) -> list[str]:
    """The values of a row as texts, in the order of the table's columns."""
    if table.names is None:
        return list(row.values.values())
    if other := row.values.keys() - set(table.names):
        raise InputError(
            f"{table.path}, line {row.line}: the first row has no {preview(sorted(other))}, so "
            "there is no column for it. Write .jsonl instead."
        )
    return [_cell(row.values.get(name, "")) for name in table.names]


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, default=str)


def _answer_cell(value: Any) -> Any:
    """A value of an answer; lists and dicts as JSON."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value


def _cell_writer(file: IO[str], file_format: TableFormat) -> Callable[[Sequence[Any]], None]:
    if file_format.quoted:
        plain, all_quoted = (
            csv.writer(
                file, delimiter=file_format.delimiter, lineterminator="\n", quoting=quoting
            ).writerow
            for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        )

        def write_quoted(cells: Sequence[Any]) -> None:
            # `csv` leaves a carriage return unquoted, though readers end a row there.
            (all_quoted if any("\r" in str(cell) for cell in cells) else plain)(cells)

        return write_quoted

    def write_plain(cells: Sequence[Any]) -> None:
        texts = [str(cell) for cell in cells]
        for text in texts:
            if any(end in text for end in (file_format.delimiter, "\n", "\r")):
                raise Unsupported(
                    f"A cell of a {file_format.extension} file cannot hold its delimiter or a line "
                    f"end. Write .csv or .jsonl instead. Received: {preview(text)}"
                )
        file.write(file_format.delimiter.join(texts) + "\n")

    return write_plain
