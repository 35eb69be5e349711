"""Line ends, delimiters and quotes of tables, as their first rows show them."""

import codecs
import contextlib
import csv
import io
import itertools
import zlib
from collections.abc import Iterator, Sequence
from typing import IO

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.sanitize import preview

csv.field_size_limit(2**31 - 1)

CANDIDATES = (",", ";", "\t", "|")
HEAD = 1 << 16  # Bytes of a file that are looked at.
ROWS = 20  # Rows of these that are compared.


def split_rows(lines: IO[str], delimiter: str, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    """Yields the number of the first line of each row, and its cells.

    `lines` are opened with the `newline` of `line_end`. Raises `csv.Error`, with the line, for bad
    quoting.
    """
    if not quoted:
        for number, line in enumerate(lines, 1):
            yield number, line.removesuffix("\n").removesuffix("\r").split(delimiter)
        return
    reader, start = csv.reader(lines, delimiter=delimiter, strict=True), 1
    try:
        for cells in reader:
            yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise csv.Error(f"line {start}: {error}") from error


def is_blank(cells: Sequence[str], quoted: bool) -> bool:
    """Whether a row of `split_rows` is a blank line, and not a quoted cell without text."""
    return list(cells) == ([] if quoted else [""])


def line_end(text: str, quoted: bool) -> str:
    """The `newline` with which a table is opened; `text` is its beginning.

    In a plain table only a line feed ends a line, because texts hold form feeds and carriage
    returns; or a carriage return, if there is no line feed. In quoted cells no end is translated.
    """
    if quoted:
        return ""
    return "\r" if "\r" in text and "\n" not in text else "\n"


def find_delimiter(beginning: str, usual: str, quoted: bool) -> str:
    """The delimiter of a table whose first row names its columns, or has at least two cells.

    It is `usual` unless the first row has no such character, and another splits the first rows
    into equally many cells.
    """
    if len(first_rows(beginning, usual, quoted)[0]) > 1:
        return usual
    widths = {}
    for delimiter in CANDIDATES:
        rows = first_rows(beginning, delimiter, quoted)
        if all(cell.strip() for cell in rows[0]) and len({len(row) for row in rows}) == 1:
            widths[delimiter] = len(rows[0])
    best = max(widths, key=lambda delimiter: widths[delimiter], default=usual)
    return best if widths.get(best, 1) > 1 else usual


def warn_of_delimiter(file: str, delimiter: str) -> None:
    """Warns that a table has another delimiter than files of its name usually have."""
    logging.warning(f"{file}: read with {preview(delimiter)} between its cells (delimiter).")


def first_rows(beginning: str, delimiter: str, quoted: bool) -> list[list[str]]:
    """The first rows that are not blank; at least one."""
    lines = io.StringIO(beginning, newline=line_end(beginning, quoted))
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # The beginning may end in a quoted cell.
        for _, cells in itertools.islice(split_rows(lines, delimiter, quoted), ROWS):
            rows += [cells] if any(cells) else []
    return rows or [[""]]


def actual_encoding(path: str, recorded: str) -> str:
    """The encoding of a file whose training data had the recorded one, which may be UTF-8."""
    with contextlib.suppress(LookupError):  # Reading the file raises an error for the encoding.
        if codecs.lookup(recorded).name in ("utf-8", "utf-8-sig"):
            return recorded
    return "utf-8" if _begins_as_utf8(path) else recorded


def warn_of_encoding(path: str, recorded: str) -> None:
    """Warns that a file is read as UTF-8, not in the encoding of the adapter's table."""
    logging.warning(
        f"{path} is UTF-8 and is read as such, although the adapter's table was in {recorded} "
        "(encoding)."
    )


def _begins_as_utf8(path: str) -> bool:
    """Whether a file, plain or gzipped, begins with UTF-8 text that is not ASCII alone."""
    try:
        content = _read_head(path)
        codecs.getincrementaldecoder("utf-8")().decode(content)  # It may end within a character.
    except (OSError, ValueError, zlib.error):  # Reading the whole file raises the error.
        return False
    return not content.isascii()


def _read_head(path: str) -> bytes:
    content: bytes = storage.read_bytes(path, HEAD)
    if path.endswith(".gz"):
        content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, HEAD)
    return content


def read_beginning(path: str, encoding: str) -> str:
    """The first lines of a file, plain or gzipped; "" if they cannot be decoded."""
    try:
        content = _read_head(path)
        text = content.decode(encoding, "ignore").removeprefix("\ufeff")
    except (LookupError, ValueError, zlib.error):  # Reading the whole file raises the error.
        return ""
    if len(content) < HEAD:
        return text
    return text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text


def utf16_hint(content: bytes) -> str:
    """Part of a message about content that cannot be decoded."""
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return " (it begins as utf-16 does)" if is_utf16 else ""
