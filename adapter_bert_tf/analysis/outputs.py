"""Files of an analysis: checks of the output folder, tables and pictures."""

import csv
import io
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Damaged, NotFound, Occupied
from adapter_bert_tf.output.atomic import require_creatable
from adapter_bert_tf.output.output_dir import Contents, OutputDir
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.run.output_contents import contents_of
from adapter_bert_tf.store.adapter_dir import require_outside_adapters
from adapter_bert_tf.store.files import adapter_exists

PICTURE_SUFFIXES = (".png", ".svg")
MAX_TABLE_BYTES = 64 << 20
MARK = "drawn by an analysis of adapter_bert_tf"


def file_names(name: str) -> list[str]:
    """Names of the files of an analysis: a table and two pictures."""
    return [f"{name}.csv", *(f"{name}{suffix}" for suffix in PICTURE_SUFFIXES)]


def require_writable(folder: str, names: Collection[str]) -> None:
    """Raises `InputError` for an adapter directory, for links, and for files that others wrote."""
    if not storage.isdir(folder):
        require_creatable(os.path.join(folder, "file"))
    require_outside_adapters(folder)
    OutputDir(folder, Contents(files=tuple(names))).require_clear_names()
    if adapter_exists(folder):
        raise Occupied(
            f"--output_dir={folder} is an adapter directory, in which nothing else can be. Choose "
            "another folder."
        )
    paths = [os.path.join(folder, name) for name in names]
    problems = [f"{path} is a link." for path in paths if storage.is_link(path)]
    problems += [f"{path} exists, and no analysis wrote it." for path in _foreign_files(paths)]
    if problems:
        raise Occupied(f"{problems[0]} Move it away, or choose another --output_dir.")


def lock(folder: str, names: Collection[str]) -> AbstractContextManager[None]:
    """Holds a folder, perhaps that of a run, in which an analysis writes files of these names."""
    return OutputDir(folder, contents_of(names)).lock()


def _foreign_files(paths: Sequence[str]) -> list[str]:
    """The existing files that no analysis wrote.

    Pictures and caches are marked (pictures of earlier versions by their command). A table belongs
    to an analysis if one of these exists, so pictures are written first.
    """
    existing = [path for path in paths if storage.exists(path)]
    own = [path for path in existing if _is_marked(path)]
    return [
        path
        for path in existing
        if (path.endswith(PICTURE_SUFFIXES) and path not in own)
        or (path.endswith(".csv") and not own)
    ]


def _is_marked(path: str) -> bool:
    if path.endswith(PICTURE_SUFFIXES):
        head = storage.read_bytes(path, 2**16)
        return MARK.encode() in head or (b"escription" in head and b"analy" in head)
    return path.endswith(".json") and "identity" in (read_record(path) or {})


def write(
    folder: str, tables: Mapping[str, bytes], figure: Any, figure_name: str, command: str
) -> str:
    """Writes tables and the pictures of a figure atomically; returns their paths as text."""
    pictures = picture_files(figure, figure_name, command)
    for name, content in {**pictures, **tables}.items():
        path = os.path.join(folder, name)
        if storage.exists(path) and storage.read_bytes(path) != content:
            print(f"Replaced: {path}", flush=True)
        storage.write_bytes(path, content)
    return ", ".join(os.path.join(folder, name) for name in (*tables, *pictures))


def csv_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Formats a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def read_table(path: str) -> str:
    """Reads the text of a table or ledger, UTF-8 with or without a mark. Raises `InputError`."""
    if not storage.exists(path) or storage.isdir(path):
        raise NotFound(f"There is no file {path!r}.")
    content: bytes = storage.read_bytes(path, MAX_TABLE_BYTES + 1)
    if len(content) > MAX_TABLE_BYTES:
        raise Damaged(f"{path} is not a table: it has more than {MAX_TABLE_BYTES:,} bytes.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Damaged(f"{path}: {error}. It must be a text file.") from error


def picture_files(figure: Any, name: str, command: str) -> dict[str, bytes]:
    """`NAME.png` and `NAME.svg` of a matplotlib figure, with the command, reproducible."""
    import matplotlib
    from matplotlib import ticker

    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if isinstance(axis.get_major_formatter(), ticker.ScalarFormatter):
            axis.get_major_formatter().set_useOffset(False)  # Not `1e-5+8.655e-1`.
    files = {}
    for suffix in PICTURE_SUFFIXES:
        content = io.BytesIO()
        date = {"Date": None} if suffix == ".svg" else {}  # PNG has none by default.
        with matplotlib.rc_context({"svg.hashsalt": name}):
            metadata = {"Title": MARK, "Description": command, **date}
            figure.savefig(content, format=suffix.lstrip("."), dpi=150, metadata=metadata)
        files[f"{name}{suffix}"] = content.getvalue()
    return files
