"""Files that paths, folders and patterns of names stand for; the digest of their content."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Damaged, NotFound, Unavailable, Unsupported
from adapter_bert_tf.sanitize import truncate

WILDCARDS = "*?["
PART = 1 << 20  # Bytes in memory.


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


def find_files(paths: Iterable[str], endings: Sequence[str], noun: str = "file") -> list[str]:
    """The files that paths, folders and patterns stand for, each once.

    A folder stands for all files in and below it whose names end with one of `endings`, by name;
    hidden ones do not count. Raises `NotFound` for a path that stands for none.

    Args:
      paths: local or gs://.
      endings: in lower case, such as `.txt`.
      noun: what is looked for, in messages.
    """
    found: dict[str, str] = {}
    for path in paths:
        for file in _files_at(path, tuple(endings), noun):
            found.setdefault(storage.real(file), file)
    return list(found.values())


def _files_at(path: str, endings: tuple[str, ...], noun: str) -> list[str]:
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
            if name.lower().endswith(endings) and not name.startswith(".")
        ]
        files = [file for file in files if _is_file(file)]
        if not files:
            raise NotFound(f"The folder {path!r} has no file {' or '.join(endings)}.")
        return sorted(files)
    if not storage.exists(path):
        raise NotFound(f"There is no {noun} {path!r}.")
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
        for part in read_parts(path, unpacked=False):
            of_file.update(part)
        result.update(of_file.digest())
    return result.hexdigest()


def read_parts(path: str, unpacked: bool = True) -> Iterator[bytes]:
    """Yields the bytes of a file in parts; `.gz` is unpacked. Raises `InputError`."""
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
