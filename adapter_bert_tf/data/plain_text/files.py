"""Plain text files of any size, read in parts: a text a line, or a paragraph."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import Literal

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Damaged, NotFound, Unavailable, Unsupported
from adapter_bert_tf.sanitize import preview, truncate

Unit = Literal["line", "paragraph"]

EXTENSIONS = (".txt", ".txt.gz")  # Of the files that a folder stands for.
WILDCARDS = "*?["
PART = 1 << 20  # Bytes in memory.
LONGEST_TEXT = 1 << 20  # Bytes.


def split_paths(value: str) -> list[str]:
    """The paths in a value such as `a.txt,folder,*.txt.gz`."""
    return [path for part in value.split(",") if (path := part.strip())]


def is_pattern(path: str) -> bool:
    """Whether a path stands for all files that match it. An existing file stands for itself."""
    return any(c in path for c in WILDCARDS) and (
        storage.is_remote(path) or not os.path.lexists(path)
    )


def fixed_part(path: str) -> str:
    """The path itself, or the folder above the first wildcard of a pattern."""
    if not is_pattern(path):
        return path
    first = min(path.index(c) for c in WILDCARDS if c in path)
    return os.path.dirname(path[:first]) or "."


def find_files(paths: Iterable[str]) -> list[str]:
    """The files that paths, folders and patterns stand for, each once.

    A folder stands for all `.txt` and `.txt.gz` files in and below it, by name. Raises `NotFound`
    for a path that stands for none.
    """
    found: dict[str, str] = {}
    for path in paths:
        for file in _files_at(path):
            found.setdefault(storage.real(file), file)
    return list(found.values())


def _files_at(path: str) -> list[str]:
    if is_pattern(path):
        files = [file for file in sorted(storage.glob(path)) if _is_file(file)]
        if not files:
            raise NotFound(f"No file matches {path!r}.")
        return files
    if storage.isdir(path):
        files = [
            os.path.join(folder, name)
            for folder, _, names in storage.walk(path)
            for name in names
            if name.lower().endswith(EXTENSIONS) and not name.startswith(".")
        ]
        files = [file for file in files if _is_file(file)]
        if not files:
            raise NotFound(f"The folder {path!r} has no file {' or '.join(EXTENSIONS)}.")
        return sorted(files)
    if not storage.exists(path):
        raise NotFound(f"There is no text file {path!r}.")
    if not _is_file(path):
        raise Unsupported(f"{path} is not a regular file, and is read more than once.")
    return [path]


def _is_file(path: str) -> bool:
    """Whether a path is a file and not, for example, a pipe, which would wait forever."""
    return not storage.isdir(path) if storage.is_remote(path) else os.path.isfile(path)


def digest(paths: Iterable[str]) -> str:
    """SHA-256 of the content of files in their order, whatever their names. Raises `InputError`."""
    result = hashlib.sha256()
    for path in paths:
        of_file = hashlib.sha256()
        for part in _parts(path, unpacked=False):
            of_file.update(part)
        result.update(of_file.digest())
    return result.hexdigest()


def read_texts(paths: Iterable[str], unit: Unit = "line") -> Iterator[bytes]:
    """Yields the texts of files, UTF-8 without white space around them; a part is in memory.

    Args:
      paths: files, local or gs://; `.gz` is unpacked.
      unit: what a text is. The lines of a paragraph are joined with blanks; empty lines, and the
        end of a file, separate paragraphs.

    Raises:
      InputError: with file and line, for a text over `LONGEST_TEXT`, what is not UTF-8 text, and a
        file without text.
    """
    for path in paths:
        is_empty = True
        for text in _paragraphs(path) if unit == "paragraph" else _lines(path):
            if text:
                is_empty = False
                yield text
        if is_empty:
            raise Damaged(f"{path} holds no text. Leave it out.")


def _paragraphs(path: str) -> Iterator[bytes]:
    lines: list[bytes] = []
    size = 0
    for number, line in enumerate(_lines(path), start=1):
        size = size + len(line) + 1 if line else 0
        if size > LONGEST_TEXT:
            raise _too_long(path, number, "paragraph", "separate paragraphs with empty lines")
        if line:
            lines.append(line)
        elif lines:
            yield b" ".join(lines)
            lines = []
    yield b" ".join(lines)


def _lines(path: str) -> Iterator[bytes]:
    """Yields the lines, without white space around them, also the empty ones."""
    rest, number = b"", 0
    for part in _parts(path):
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            number += 1
            yield _checked(line, path, number)
        if len(rest) > LONGEST_TEXT:
            _checked(rest[:PART], path, number + 1, cut=True)  # Binary files seldom have lines.
            raise _too_long(path, number + 1, "line", "break it into lines")
    yield _checked(rest, path, number + 1)


def _checked(line: bytes, path: str, number: int, cut: bool = False) -> bytes:
    """A line without white space around it. Raises `InputError` if it is not UTF-8 text."""
    line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
    if b"\0" in line:
        raise Damaged(f"{path}, line {number}: it has a byte 0, so it is binary, not a text file.")
    if len(line) > LONGEST_TEXT and not cut:
        raise _too_long(path, number, "line", "break it into lines")
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        if not (cut and error.end == len(line)):
            wrong = preview(line[max(error.start - 20, 0) : error.start + 20])
            raise Damaged(
                f"{path}, line {number}: it is not UTF-8 text. Received: {wrong}. Convert a text "
                "in another encoding with iconv."
            ) from error
    return line.strip()


def _too_long(path: str, number: int, what: str, fix: str) -> Damaged:
    return Damaged(f"{path}, line {number}: a {what} has more than {LONGEST_TEXT:,} bytes; {fix}.")


def _parts(path: str, unpacked: bool = True) -> Iterator[bytes]:
    """Yields the bytes of a file in parts. Raises `InputError`."""
    (local,) = storage.cached(path)
    try:
        with open(local, "rb") as raw:
            is_packed = unpacked and path.lower().endswith(".gz")
            file = gzip.GzipFile(fileobj=raw) if is_packed else raw
            while part := file.read(PART):
                yield part
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        reason = truncate(str(error), 200)
        raise Damaged(f"{path} is damaged or incomplete: {reason}. Copy it again.") from error
    except OSError as error:
        raise Unavailable(f"Cannot read {path}: {storage.reason(error)}") from error
