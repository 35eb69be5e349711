"""The files of an analysis: where they may go, and what they replace."""

import csv
import io
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.atomic import require_creatable
from adapter_bert_tf.output.output_dir import Contents, OutputDir
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.run.output_contents import contents_of
from adapter_bert_tf.store.adapter_dir import require_outside_adapters
from adapter_bert_tf.store.directory import adapter_exists

DRAWN = (".png", ".svg")
MARK = "drawn by an analysis of adapter_bert_tf"


def require(folder: str, names: Collection[str]) -> None:
    """An analysis may write files of these names in a folder, there already or not.

    Raises:
      InputError: for a file where the folder goes, a folder where a file goes, a file that no
        analysis wrote, and the directory of an adapter, in which nothing else may be.
    """
    if not storage.isdir(folder):
        require_creatable(os.path.join(folder, "file"))
    require_outside_adapters(folder)
    OutputDir(folder, Contents(files=tuple(names))).require_clear_names()
    if adapter_exists(folder):
        raise InputError(
            f"--output_dir={folder} is an adapter directory, in which nothing else can be. Choose "
            "another folder."
        )
    linked = [path for name in names if storage.is_link(path := os.path.join(folder, name))]
    if linked:
        raise InputError(
            f"{linked[0]} is a link, and the analysis writes a file there. Move it away, or choose "
            "another --output_dir."
        )
    if foreign := _foreign(folder, names):
        raise InputError(
            f"{foreign[0]} is there, and no analysis wrote it, or not the one that writes it now. "
            "Move it away, or choose another --output_dir."
        )


def lock(folder: str, names: Collection[str]) -> AbstractContextManager[None]:
    """Holds a folder, perhaps that of a run, in which an analysis writes files of these names."""
    return OutputDir(folder, contents_of(names)).lock()


def _foreign(folder: str, names: Collection[str]) -> list[str]:
    """Paths of the files of these names that no analysis wrote.

    A picture says so (of earlier versions by its command), what is kept says of what it is; a table
    is theirs if one of these is beside it, so pictures are written first.
    """
    there = [path for name in names if storage.exists(path := os.path.join(folder, name))]
    marked = [path for path in there if _is_marked(path)]
    return [
        path
        for path in there
        if (path.endswith(DRAWN) and path not in marked) or (path.endswith(".csv") and not marked)
    ]


def _is_marked(path: str) -> bool:
    """Whether a picture, or what was kept, says that an analysis made it."""
    if path.endswith(DRAWN):
        head = storage.read_bytes(path, 2**16)
        return MARK.encode() in head or (b"escription" in head and b"analy" in head)
    return path.endswith(".json") and "identity" in (read_record(path) or {})


def write(folder: str, files: Mapping[str, bytes]) -> list[str]:
    """Writes files, each whole or not at all; says which it replaced. Returns their paths."""
    for name in sorted(files, key=lambda name: not name.endswith(DRAWN)):
        path, content = os.path.join(folder, name), files[name]
        if storage.exists(path) and storage.read_bytes(path) != content:
            print(f"Replaced: {path}", flush=True)
        storage.write_bytes(path, content)
    return [os.path.join(folder, name) for name in files]


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """A CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def pictures(figure: Any, name: str, command: str) -> dict[str, bytes]:
    """The files `NAME.png` and `NAME.svg`; of the same figure and command the same bytes.

    Args:
      figure: of matplotlib.
      name: of the files.
      command: that made them; it is kept in the files.
    """
    import matplotlib

    found = {}
    for kind in ("png", "svg"):
        content = io.BytesIO()
        undated = {"Date": None} if kind == "svg" else {}  # A PNG has no date by itself.
        with matplotlib.rc_context({"svg.hashsalt": name}):
            metadata = {"Title": MARK, "Description": command, **undated}
            figure.savefig(content, format=kind, dpi=150, metadata=metadata)
        found[f"{name}.{kind}"] = content.getvalue()
    return found
