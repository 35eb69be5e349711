"""Reads data files whole: TSV, CSV, JSON lines, Parquet, folders of texts; plain or gzipped."""

import csv
import gzip
import io
import itertools
import os
import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.data.tables.delimiters import is_blank, line_end, split_rows, utf16_hint
from adapter_bert_tf.data.tables.indicator_columns import INDICATORS, problem_of_labels
from adapter_bert_tf.data.tables.malformed_rows import Rows
from adapter_bert_tf.data.tables.rows import Row, cell_text, text_of, texts_of
from adapter_bert_tf.data.tables.stream import OBJECTS, extension_of, open_table, table_format
from adapter_bert_tf.errors import Damaged, InputError, Missing, NotFound, Unavailable
from adapter_bert_tf.sanitize import preview, truncate
from adapter_bert_tf.tasks.task import Source


def read_table(source: Source, folder: str) -> tuple[list[str] | None, Rows]:
    """Reads all rows of a source: (header or None, list of (place, cells)). Raises `InputError`."""
    path = require_file(source, folder)
    if not source.files and source.file.endswith("/"):
        return None, _folder_rows(path, source)
    paths = source.files or (path,)
    if extension_of(path) in OBJECTS:
        return _object_rows(paths, source)
    tables = [_read_cells(path, source) for path in paths]
    return tables[0][0], list(itertools.chain.from_iterable(rows for _, rows in tables))


def _read_cells(path: str, source: Source) -> tuple[list[str] | None, Rows]:
    text = _decode(path, _read(path), source.encodings)
    rows = _quoted_rows(path, text, source) if source.quoted else _plain_rows(path, text, source)
    if not rows:
        raise Damaged(f"{path} is empty.")
    return (rows[0][1], rows[1:]) if source.has_header else (None, rows)


def require_file(source: Source, folder: str) -> str:
    """Returns the path of a source's file. Raises `InputError` if there is none."""
    path = find_file(source, folder)
    if path is None and not source.file:
        names = ("train_file", "dev_file", "test_file")
        raise Missing("A file is missing. Name it: train_file, dev_file or test_file.", *names)
    if path is None:
        raise NotFound(
            f"No data file {os.path.join(folder, source.file)!r}: {_listing(folder)}."
            f"{_hint(source)}",
            "dev_share=0",
            "evaluate=True",
        )
    return path


def find_file(source: Source, folder: str) -> str | None:
    """Returns the path of a source's file, plain or gzipped, or None; refuses a broken link.

    Of several files it is the first.
    """
    if source.files or not source.file:
        return next(iter(source.files), None)
    path = os.path.join(folder, source.file)
    candidates = [path] if source.file.endswith("/") else [path, f"{path}.gz"]
    file = next((p for p in candidates if storage.exists(p) or storage.is_link(p)), None)
    if file and not storage.exists(file):
        target = os.readlink(file)
        raise NotFound(f"{file} is a link to {target!r}, which does not exist. Correct it.")
    return file


def _hint(source: Source) -> str:
    """What else the user may want, by the split that is missing."""
    own = source.strict and not source.file.endswith("/")
    if own and source.file.startswith("train."):
        return " A table of another name is the training data if it is alone in its folder."
    if own and source.file.startswith("dev."):
        return " With dev_share=0 there is no other development set. Leave out evaluate=True."
    if own and source.file.startswith("test."):
        return " `adapter-bert predict` answers the rows of any other file."
    return ""


def _listing(folder: str) -> str:
    if not storage.isdir(folder):
        return "no such folder"
    names = sorted(storage.listdir(folder))
    return f"found {names[:12]}{' and more' if len(names) > 12 else ''}"


def _read(path: str) -> bytes:
    try:
        content: bytes = storage.read_bytes(path)
        return gzip.decompress(content) if path.endswith(".gz") else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Damaged(f"Cannot read {path!r}: {error}") from error
    except OSError as error:
        raise Unavailable(f"Cannot read {path!r}: {error}") from error


def _decode(path: str, content: bytes, encodings: Sequence[str]) -> str:
    """Decodes with the first encoding that fits, without a byte-order mark."""
    for encoding in encodings:
        try:
            return content.decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            failure = error
        except (LookupError, ValueError) as error:  # Also for encodings of bytes, such as hex.
            raise InputError(
                f"Unknown encoding {encoding!r} for {path}: {truncate(str(error), 200)}. Examples: "
                "encoding=utf-8, utf-16, latin-1, cp1252.",
                "encoding",
            ) from error
    line = content.count(b"\n", 0, failure.start) + 1
    raise Damaged(
        f"{path}: the byte 0x{content[failure.start]:02x} at offset {failure.start} (line {line}) "
        f"is not {failure.encoding} text{utf16_hint(content)}. Save the file as UTF-8, or set "
        "encoding=NAME for a table of your own.",
        "encoding=NAME",
    )


def _plain_rows(path: str, text: str, source: Source) -> Rows:
    lines = io.StringIO(text, newline=line_end(text, False))
    rows = [((path, line), cells) for line, cells in split_rows(lines, source.delimiter, False)]
    while rows and is_blank(rows[-1][1], quoted=False):
        rows.pop()
    if source.escaped:
        rows = [(place, [_unescape(cell) for cell in cells]) for place, cells in rows]
    return rows


def _quoted_rows(path: str, text: str, source: Source) -> Rows:
    lines = io.StringIO(text, newline=line_end(text, True))
    try:
        rows = [((path, line), cells) for line, cells in split_rows(lines, source.delimiter, True)]
    except csv.Error as error:
        raise Damaged(
            f"{path}, {error}. Is a quotation mark missing, or is the file not quoted at all "
            "(quoted=False)?",
            "quoted=False",
        ) from error
    return _without_blank(path, rows)


def _object_rows(paths: Sequence[str], source: Source) -> tuple[list[str], Rows]:
    objects: list[tuple[str, Row]] = []
    for path in paths:
        with open_table(path, table_format(path, encoding=source.encodings[0])) as table:
            objects += [(path, row) for row in table]
    if not objects:
        raise Damaged(f"{' and '.join(paths[:2])} {'is' if len(paths) == 1 else 'are'} empty.")
    header = list(dict.fromkeys(name for _, row in objects for name in row.values))
    return header, object_cells(source, header, objects)


def object_cells(source: Source, header: Sequence[str], objects: Iterable[tuple[str, Row]]) -> Rows:
    """Rows of JSON lines or Parquet; one without its texts has no cells, so it is malformed.

    Args:
      source: of the rows.
      header: names of the columns.
      objects: paths and rows.
    """
    texts = [str(c) for c in (source.columns.text_a, source.columns.text_b) if c in header]
    rows: Rows = []
    for path, row in objects:
        found = texts_of(row, texts)
        error = found if isinstance(found, str) else None
        labels = row.values.get(str(source.columns.label))
        problem = None if error else problem_of_labels(labels)
        if problem:
            advice = f"Received: {preview(labels)}"
            if problem == INDICATORS:
                advice = "Write their names, or a column of 0 and 1 for each label, and name the "
                advice += "columns: label_column=A,B"
            raise InputError(f"{path}, line {row.line}: {problem} {advice}", "label_column=A,B")
        if error and not source.skip_bad_rows:
            raise InputError(
                f"{path}, line {row.line}: {error} Correct this, or pass skip_bad_rows=True to "
                "leave such rows out.",
                "skip_bad_rows=True",
            )
        cells = [] if error else [_cell(row.values.get(name), name in texts) for name in header]
        rows.append(((path, row.line), cells))
    return rows


def _cell(value: Any, is_text: bool) -> str:
    """A cell of an object; half of a surrogate pair, as in texts that were cut, becomes `?`."""
    text = text_of(value) if is_text else cell_text(value)
    return text.encode("utf-8", "replace").decode()


def _without_blank(path: str, rows: Rows) -> Rows:
    """Removes blank lines; in a table of one column those between rows are empty texts."""
    filled = [i for i, (_, cells) in enumerate(rows) if not is_blank(cells, quoted=True)]
    rows = rows[filled[0] : filled[-1] + 1] if filled else []
    if max((len(cells) for _, cells in rows), default=0) == 1:
        return [(place, cells or [""]) for place, cells in rows]
    nonblank = [row for row in rows if row[1]]
    if blank := len(rows) - len(nonblank):
        logging.warning(f"{path}: left out {blank} blank lines.")
    return nonblank


def _unescape(cell: str) -> str:
    escapes = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}
    return re.sub(r"\\[\\tnr]", lambda match: escapes[match[0]], cell)


def _folder_rows(path: str, source: Source) -> Rows:
    """One row for each file that is not hidden: its text, and the name of its folder as label."""
    rows: Rows = []
    for label in sorted(name.rstrip("/") for name in storage.listdir(path)):
        folder = os.path.join(path, label)
        if storage.isdir(folder):
            for name in sorted(n for n in storage.listdir(folder) if not n.startswith(".")):
                file = os.path.join(folder, name)
                rows.append(((file, 1), [_decode(file, _read(file), source.encodings), label]))
    return rows
