"""Plain text files of any size, read in parts: a text a line, or a paragraph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from adapter_bert_tf.data import file_sets
from adapter_bert_tf.data.file_sets import PART, read_parts
from adapter_bert_tf.errors import Damaged
from adapter_bert_tf.sanitize import preview

Unit = Literal["line", "paragraph"]

EXTENSIONS = (".txt", ".txt.gz")  # Of the files that a folder stands for.
LONGEST_TEXT = 1 << 20  # Bytes.


def find_files(paths: Iterable[str]) -> list[str]:
    """The text files that paths, folders and patterns stand for. Raises `InputError` for none."""
    return file_sets.find_files(paths, EXTENSIONS, "text file")


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
    for part in read_parts(path):
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
