"""Rows of the files that tasks are distributed in: TSV, CSV, folders of texts; plain or gzipped."""

import codecs
import csv
import gzip
import io
import os
import re
import zlib

import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import truncate

csv.field_size_limit(2**31 - 1)


def read_table(source, folder):
    """Reads all rows of a source.

    Args:
      source: `tasks.Source`.
      folder: the data folder, local or gs://.

    Returns:
      (header or None, list of (place, cells)); a place is (path, line number), for messages.

    Raises:
      InputError: for a missing, empty, undecodable or badly quoted file.
    """
    path = find_file(source, folder)
    if path is None:
        raise InputError(
            f"No data file {os.path.join(folder, source.file)!r}: {_found(folder)}.{_hint(source)}"
        )
    if source.file.endswith("/"):
        return None, _folder_rows(path, source)
    text = _decode(path, _read(path), source.encodings)
    rows = _quoted_rows(path, text, source) if source.quoted else _plain_rows(path, text, source)
    if not rows:
        raise InputError(f"{path} is empty.")
    return (rows[0][1], rows[1:]) if source.has_header else (None, rows)


def find_file(source, folder):
    """Path of a source's file, plain or gzipped; None if it is not there.

    Raises:
      InputError: for a link that leads nowhere: the file is there for its owner.
    """
    path = os.path.join(folder, source.file)
    candidates = [path] if source.file.endswith("/") else [path, f"{path}.gz"]
    found = next((p for p in candidates if storage.exists(p) or storage.is_link(p)), None)
    if found and not storage.exists(found):
        raise InputError(
            f"{found} is a link to {os.readlink(found)!r}, where nothing is. Mend or remove it."
        )
    return found


def _hint(source):
    """What else may be meant by a table of the user's own, by the split that is missing."""
    own = source.strict and not source.file.endswith("/")
    if own and source.file.startswith("train."):
        return " A table of another name is the training data if it is alone in its folder."
    if own and source.file.startswith("test."):
        return " `adapter-bert predict` answers the rows of any other file."
    return ""


def _found(folder):
    if not storage.isdir(folder):
        return "no such folder"
    names = sorted(storage.listdir(folder))
    return f"found {names[:12]}{' and more' if len(names) > 12 else ''}"


def _read(path):
    try:
        content = storage.read_bytes(path)
        return gzip.decompress(content) if path.endswith(".gz") else content
    except (tf.errors.OpError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"Cannot read {path!r}: {error}") from error


def _decode(path, content, encodings):
    """Text without a byte-order mark, in the first encoding that fits."""
    for encoding in encodings:
        try:
            return content.decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            failure = error
        except (LookupError, ValueError) as error:  # Also of encodings that are none of text.
            raise InputError(
                f"Unknown encoding {encoding!r} for {path}: {truncate(str(error), 200)}. Name one "
                "that Python knows, such as utf-8, utf-16, latin-1 or cp1252 (encoding=NAME).",
                "encoding=NAME",
            ) from error
    line = content.count(b"\n", 0, failure.start) + 1
    marked = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    hint = " (it begins as utf-16 does)" if marked else ""
    raise InputError(
        f"{path}: the byte 0x{content[failure.start]:02x} at offset {failure.start} (line {line}) "
        f"is not {failure.encoding} text{hint}. Save the file as UTF-8; for a table of your own, "
        "encoding=NAME says another.",
        "encoding=NAME",
    )


def _plain_rows(path, text, source):
    """One row a line, without quoting. Only a line feed ends a line: texts hold form feeds."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    rows = [((path, i), line.split(source.delimiter)) for i, line in enumerate(lines, start=1)]
    if source.escaped:
        rows = [(place, [_unescape(cell) for cell in cells]) for place, cells in rows]
    return rows


def _quoted_rows(path, text, source):
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=source.delimiter, strict=True)
    rows, start = [], 1
    try:
        for cells in reader:
            rows.append(((path, start), cells))
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}, line {start}: {error}. Is a quotation mark missing, or is the "
            "file not quoted at all (quoted=False)?",
            "quoted=False",
        ) from error
    return _without_blank(path, rows)


def _without_blank(path, rows):
    """Rows without blank lines; in a table of one column such a line is a row without a text."""
    filled = [i for i, (_, cells) in enumerate(rows) if cells]
    rows = rows[filled[0] : filled[-1] + 1] if filled else []
    if max((len(cells) for _, cells in rows), default=0) == 1:
        return [(place, cells or [""]) for place, cells in rows]
    kept = [row for row in rows if row[1]]
    if len(kept) < len(rows):
        logging.warning("%s: left out %d blank lines.", path, len(rows) - len(kept))
    return kept


def _unescape(cell):
    escapes = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}
    return re.sub(r"\\[\\tnr]", lambda match: escapes[match[0]], cell)


def _folder_rows(path, source):
    """One row a file: its text and the name of the folder that it lies in."""
    rows = []
    for label in sorted(name.rstrip("/") for name in storage.listdir(path)):
        folder = os.path.join(path, label)
        if storage.isdir(folder):
            for name in sorted(storage.listdir(folder)):
                file = os.path.join(folder, name)
                rows.append(((file, 1), [_decode(file, _read(file), source.encodings), label]))
    return rows
