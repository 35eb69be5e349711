"""Files of rows as a job sees them: found, opened at any row, and cut into parts."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import itertools
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any, BinaryIO, TypeAlias

from adapter_bert_tf import storage
from adapter_bert_tf.beam.parquet_rows import ParquetRows
from adapter_bert_tf.beam.text_rows import TEXT, Layout, Place, TextRows
from adapter_bert_tf.data.file_sets import fixed_part, is_pattern
from adapter_bert_tf.data.tables.delimiters import read_beginning
from adapter_bert_tf.data.tables.rows import Row
from adapter_bert_tf.data.tables.stream import (
    TableFormat,
    extension_of,
    table_format,
    with_found_delimiter,
)
from adapter_bert_tf.errors import Damaged, NotFound, Unavailable, Unsupported
from adapter_bert_tf.predict.columns import reading_options
from adapter_bert_tf.retry import retry_remote
from adapter_bert_tf.sanitize import truncate
from adapter_bert_tf.task_types import TASK_TYPES, type_of

REQUESTS = 32  # At a time: each takes some 50 ms, and there may be thousands of files.
MOST_COLUMNS = 4  # Of words, as in CoNLL 2003: the word and three tags.
READ = (".csv", ".tsv", ".jsonl", TEXT, ".parquet")
DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)  # What a packed file raises.
BUFFER = 1 << 20  # Bytes of a remote file that are asked for at a time.
Rows: TypeAlias = TextRows | ParquetRows


@dataclasses.dataclass(frozen=True)
class InputFile:
    """A file to score.

    `name` is its path below the folder that is named without wildcards: it names the rows and the
    output, wherever the files are.
    """

    path: str
    name: str
    length: int  # Bytes.
    mtime_nsec: int


@dataclasses.dataclass(frozen=True)
class Part:
    """Rows of a file that one worker scores and writes at a time."""

    file: InputFile
    form: TableFormat
    layout: Layout
    number: int  # In the file, from 0.
    start: Place
    first: int  # The number of its first row in the file, from 0.
    num_rows: int


def in_parallel(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """The results of a function that waits for a store, in the order of the items."""
    with futures.ThreadPoolExecutor(REQUESTS) as pool:
        return list(pool.map(function, items))


def find_files(paths: Sequence[str], output: str = "") -> list[InputFile]:
    """The files that paths, folders and patterns stand for, each once, by name.

    A folder stands for the files in and below it whose name has an ending of a table or a text;
    hidden ones, and those that begin with `_`, are left out, and so is what is below `output`.
    Raises `InputError` for a path that stands for none.
    """
    found: dict[str, InputFile] = {}
    below = os.path.join(storage.real(output), "") if output else "\0"
    for path in paths:
        for file in _files_at(path):
            if not (real := storage.real(file.path)).startswith(below):
                found.setdefault(real, file)
    by_stem: dict[str, InputFile] = {}
    for file in sorted(found.values(), key=lambda file: file.name):
        other = by_stem.setdefault(output_stem(file.name), file)
        if other is not file:
            same_folder = os.path.dirname(other.path) == os.path.dirname(file.path)
            advice = "Rename" if same_folder else "Give the folder above both, or"
            raise Unsupported(
                f"{other.path} and {file.path} would have the same output, "
                f"{output_stem(file.name)}. {advice} one of them."
            )
    return list(by_stem.values())


def output_stem(name: str) -> str:
    """The name of a file without its ending: `a/b` for `a/b.csv.gz`."""
    return os.path.splitext(name.removesuffix(".gz"))[0]


def _files_at(path: str) -> list[InputFile]:
    if is_pattern(path):
        root = fixed_part(path).removeprefix(".") if path[0] != "." else fixed_part(path)
        found = sorted(storage.glob(path))
        are_folders = in_parallel(storage.isdir, found)
        files = [file for file, is_one in zip(found, are_folders, strict=True) if not is_one]
        nothing = f"No file matches {path!r}."
    elif storage.isdir(path):
        root, files = (
            path,
            [
                os.path.join(folder, name)
                for folder, _, names in storage.walk(path)
                for name in sorted(names)
                if extension_of(name) in READ
                and _is_listed(os.path.join(folder, name)[len(path) :])
            ],
        )
        nothing = f"The folder {path!r} has no file {', '.join(READ)}."
    else:
        root, files = os.path.dirname(path), [path] if storage.exists(path) else []
        nothing = f"There is no file {path!r}."
    if not files:
        raise NotFound(nothing)
    return in_parallel(lambda file: _input_file(file, root), files)


def _is_listed(name: str) -> bool:
    return not any(part.startswith((".", "_")) for part in name.split("/"))


def _input_file(path: str, root: str) -> InputFile:
    if extension_of(path) not in READ:
        raise Unsupported(
            f"A file's name ends with {', '.join(READ)}. Received: {path!r}. (`predict` also reads "
            "words in columns, for taggers.)"
        )
    stat = storage.stat(path)
    name = path[len(root) :].lstrip("/") if path.startswith(root) else os.path.basename(path)
    return InputFile(path, name, stat.length, stat.mtime_nsec)


def format_of(path: str, config: Mapping[str, Any], given: Mapping[str, Any]) -> TableFormat:
    """How a file is read: as the table of an adapter, unless the user says otherwise.

    `config` is that of the adapter; `given` are `delimiter`, `header`, `quoted` and `encoding`.
    Raises `InputError` if a tagger's file of texts has words in columns.
    """
    encoding = given.get("encoding") or "utf-8"
    if extension_of(path) == TEXT:
        if type_of(config) is TASK_TYPES["tags"]:
            _require_texts(path, encoding)
        return TableFormat(TEXT, path.endswith(".gz"), "\t", False, False, encoding)
    options = reading_options(config, path, given)
    form = table_format(path, **options)
    return with_found_delimiter(path, form) if options.get("delimiter") is None else form


def _require_texts(path: str, encoding: str) -> None:
    """Raises `InputError` for words in columns: a tagger would tag each as a text of its own."""
    lines = read_beginning(path, encoding).strip().splitlines()
    cells = [len(line.split()) for line in lines]
    counts = {count for count in cells if count}
    if len(counts) == 1 and 0 in cells and max(counts) <= MOST_COLUMNS and len(cells) > 4:
        raise Unsupported(
            f"{path} seems to have a word a line and blank lines between sentences. `predict` tags "
            "such files. `score` takes a text a line, or sentences as .jsonl with a list of words "
            "for each text."
        )


@contextlib.contextmanager
def open_rows(path: str, form: TableFormat) -> Iterator[Rows]:
    """Yields the rows of an open file. Raises `InputError` for a damaged or unreadable one."""
    try:
        with open_file(path) as file:
            is_parquet = form.extension == ".parquet"
            yield ParquetRows(path, file) if is_parquet else TextRows(path, form, file)
    except DAMAGE as error:
        reason = truncate(str(error), 200)
        raise Damaged(f"{path} is damaged or incomplete: {reason}. Copy it again.") from error
    except PermissionError as error:
        raise Unavailable(f"Cannot read {path}: {storage.reason(error)}") from error


def cut(file: InputFile, form: TableFormat, num_rows: int) -> Iterator[tuple[Part, list[Row]]]:
    """Yields the parts of a file, of `num_rows` rows each but the last, and their rows.

    Raises `Damaged` behind the last row that can be read.
    """
    with open_rows(file.path, form) as rows:
        layout = rows.layout()
        start, number, inside, damage = layout.start, 0, list[Row](), None
        try:
            for place, row in rows.read(layout, layout.start):
                if not inside:
                    start = place
                inside.append(row)
                if len(inside) == num_rows:
                    yield (
                        Part(file, form, layout, number, start, number * num_rows, num_rows),
                        inside,
                    )
                    number, inside = number + 1, []
        except (Damaged, *DAMAGE) as error:
            damage = error
        if inside or (number == 0 and damage is None):
            yield Part(file, form, layout, number, start, number * num_rows, len(inside)), inside
        if damage is not None:
            raise damage


def read_part(part: Part) -> list[Row]:
    """The rows of a part."""
    with open_rows(part.file.path, part.form) as rows:
        read = rows.read(part.layout, part.start)
        return [row for _, row in itertools.islice(read, part.num_rows)]


def open_file(path: str) -> BinaryIO:
    """Opens a file to read its bytes from any place on; a remote one without a copy."""
    if not storage.is_remote(path):
        return open(path, "rb")
    return io.BufferedReader(_RemoteFile(path), BUFFER)


class _RemoteFile(io.RawIOBase):
    """Bytes of a remote file, whose reads are retried."""

    def __init__(self, path: str) -> None:
        self._path, self._offset, self._size = path, 0, storage.stat(path).length
        self._file: Any = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._size}[whence]
        self._offset = start + offset
        return self._offset

    def readinto(self, buffer: Any) -> int:
        content = retry_remote(self._read)(self._path, len(buffer))
        buffer[: len(content)] = content
        self._offset += len(content)
        return len(content)

    def _read(self, path: str, size: int) -> bytes:
        """Reads on in the open file, whose buffer holds what follows; after an error anew."""
        file, self._file = self._file or storage.open_to_read(path), None
        file.seek(self._offset)
        content: bytes = file.read(size)
        self._file = file
        return content
