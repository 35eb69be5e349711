"""Local and gs:// files, with atomic writes; only remote files need TensorFlow (`tf.io.gfile`).

A local file is written under a temporary name and renamed. An object of a store appears as a whole,
but no operation moves a folder of them at once. Remote operations raise what local ones do:
`OSError`, `FileNotFoundError` if the path is missing.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import glob as local_glob
import hashlib
import os
import pathlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any, BinaryIO

from adapter_bert_tf.errors import Damaged, InputError, Unavailable
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.retry import is_remote, retry_remote
from adapter_bert_tf.retry import reason as reason
from adapter_bert_tf.sanitize import is_utf8, parse_json, preview


@dataclasses.dataclass(frozen=True)
class Stat:
    """Size in bytes, and time of the last change, of a file."""

    length: int
    mtime_nsec: int


def path_of(value: object) -> str:
    """Returns a path as text. Raises `InputError` if it is not text or an `os.PathLike`."""
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if isinstance(path, str) and path and "\0" not in path and is_utf8(path):
        return path
    raise InputError(f"A path must be text or an `os.PathLike`. Received: {preview(value)}")


@retry_remote
def exists(path: str) -> bool:
    """Whether there is a file or folder."""
    if not is_remote(path):
        return is_utf8(path) and os.path.exists(path)
    return is_utf8(path) and tf.io.gfile.exists(path)


@retry_remote
def isdir(path: str) -> bool:
    """Whether there is a folder; raises an error if that cannot be known."""
    if not is_remote(path):
        return is_utf8(path) and _is_local_folder(path)
    try:  # TensorFlow's `isdir` also returns False if a request fails.
        return is_utf8(path) and tf.io.gfile.stat(path).is_directory
    except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError):  # Below a file.
        return False


def _is_local_folder(path: str) -> bool:
    try:
        os.stat(path)
    except PermissionError:
        raise
    except OSError:
        return False
    return os.path.isdir(path)


@retry_remote
def glob(pattern: str) -> list[str]:
    """Returns the paths that match a pattern."""
    return tf.io.gfile.glob(pattern) if is_remote(pattern) else sorted(local_glob.glob(pattern))


@retry_remote
def stat(path: str) -> Stat:
    """Returns size and time of a file."""
    if is_remote(path):
        remote = tf.io.gfile.stat(path)
        return Stat(remote.length, remote.mtime_nsec)
    local = os.stat(path)
    return Stat(local.st_size, local.st_mtime_ns)


@retry_remote
def listdir(folder: str) -> list[str]:
    """Returns the names of the files and folders in a folder."""
    if not is_remote(folder):
        return os.listdir(folder)
    try:
        return tf.io.gfile.listdir(folder)
    except tf.errors.NotFoundError as error:
        if tf.io.gfile.exists(folder):  # A request failed.
            raise tf.errors.UnavailableError(None, None, error.message) from error
        raise


def walk(folder: str) -> list[tuple[str, list[str], list[str]]]:
    """Returns (folder, names of folders, names of files) for a folder and each folder below it.

    Links to folders are listed but not followed: one may lead to a folder above it.
    """
    if not is_remote(folder):
        return list(os.walk(folder))
    names = [name for name in listdir(folder) if name] if isdir(folder) else []
    folders = [name.rstrip("/") for name in names if name.endswith("/")]
    files = [name for name in names if not name.endswith("/")]
    below = [place for name in folders for place in walk(os.path.join(folder, name))]
    return [(folder, folders, files), *below]


def makedirs(folder: str) -> None:
    """Makes a local folder; stores have no folders, and in a missing bucket the client hangs."""
    if not is_remote(folder):
        os.makedirs(folder, exist_ok=True)


@retry_remote
def remove(path: str) -> None:
    """Removes a file; a remote one may be gone, by an earlier request whose answer was lost."""
    if not is_remote(path):
        os.remove(path)
        return
    with contextlib.suppress(tf.errors.NotFoundError):
        tf.io.gfile.remove(path)


def is_link(path: str) -> bool:
    """Whether a path is a symbolic link; a link among its parent folders does not count."""
    return not is_remote(path) and os.path.islink(_without_end(path))


def _without_end(path: str) -> str:
    """Removes trailing `/` and `/.`, which refer to the target of a link."""
    while len(path) > 1 and path.endswith(("/", "/.")):
        path = path[: path.rindex("/")]
    return path


def folder_name(folder: str) -> str:
    """Returns the name of a folder, of `.` that of the working directory."""
    return os.path.basename((folder if is_remote(folder) else os.path.abspath(folder)).rstrip("/"))


def real(path: str) -> str:
    """Returns the same path for all names of one file; remote paths are compared as text."""
    if not is_remote(path):
        return os.path.realpath(path)
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{os.path.normpath(rest)}"


def rmtree(folder: str) -> None:
    """Removes a folder, if there is one, with its content; of a link only the link."""
    if is_remote(folder):  # One by one: the client's own `rmtree` stops at the first failure.
        for place, _, names in walk(folder):
            for name in names:
                remove(os.path.join(place, name))
    elif is_link(folder):
        os.unlink(_without_end(folder))
    elif os.path.lexists(folder):
        shutil.rmtree(folder)  # TensorFlow's `rmtree` empties the targets of links.


def open_to_read(path: str) -> BinaryIO:
    """Opens a file to read its bytes; what reads remote ones retries (`retry_remote`)."""
    return tf.io.gfile.GFile(path, "rb") if is_remote(path) else open(path, "rb")


@retry_remote
def read_bytes(path: str, limit: int = -1) -> bytes:
    """Reads a file, or its first `limit` bytes."""
    with open_to_read(path) as file:
        return file.read(limit)


def read_text(path: str) -> str:
    """Reads a UTF-8 file."""
    return read_bytes(path).decode("utf-8")


def read_json_object(path: str, limit: int = -1, distinct: bool = False) -> dict[str, Any]:
    """Reads a JSON object; arguments as in `read_bytes` and `parse_json`. Raises `InputError`."""
    try:
        values = parse_json(read_bytes(path, limit), distinct)
    except OSError as error:
        raise Unavailable(f"Cannot read {path!r}: {reason(error)}") from error
    except ValueError as error:
        raise Damaged(f"{path} is not valid JSON: {error}. Is the file complete?") from error
    if not isinstance(values, dict):
        raise Damaged(f"{path} must hold a JSON object. Received: {preview(values)}")
    return values


@retry_remote
def write_bytes(path: str, content: bytes) -> None:
    """Writes a file atomically; makes its folder."""
    if is_remote(path):
        with tf.io.gfile.GFile(path, "wb") as file:
            file.write(content)
        return
    makedirs(os.path.dirname(path) or ".")
    temporary = f"{path}.{uuid.uuid4().hex[:8]}.tmp"
    pathlib.Path(temporary).write_bytes(content)
    os.replace(temporary, path)


def write_text(path: str, text: str) -> None:
    """Writes a UTF-8 file atomically; makes its folder."""
    write_bytes(path, text.encode("utf-8"))


def copy(source: str, target: str) -> None:
    """Copies a file; replaces `target`."""
    write_bytes(target, read_bytes(source))


def copy_files(source: str, folder: str) -> None:
    """Copies the files of a folder without subfolders, in the order of their names."""
    for name in sorted(listdir(source)):
        copy(os.path.join(source, name), os.path.join(folder, name))


def working_folder(folder: str) -> str:
    """Returns `folder`, or for a remote one a local folder that is removed at exit."""
    if not is_remote(folder):
        return folder
    local = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, local, ignore_errors=True)
    return local


@contextlib.contextmanager
def local_folder(folder: str) -> Iterator[str]:
    """Yields `folder`, or for a remote one a local folder that is copied there at the end."""
    if not is_remote(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory() as local:
        yield local
        copy_files(local, folder)


def upload(source: str, folder: str, last: str) -> None:
    """Replaces a remote folder by a local one so that a half-written one counts as empty.

    `last` is the file without which the folder counts as empty: it is removed first and written
    last. Other files in the remote folder are removed.
    """
    names = [
        str(path.relative_to(source))
        for path in sorted(pathlib.Path(source).rglob("*"))
        if path.is_file()
    ]
    remove(os.path.join(folder, last))
    for place, _, files in walk(folder):
        for path in (os.path.join(place, name) for name in files):
            if os.path.relpath(path, folder) not in names:
                remove(path)
    for name in sorted(names, key=lambda name: name == last):
        copy(os.path.join(source, name), os.path.join(folder, name))


def cached(*paths: str) -> list[str]:
    """Returns local paths: `paths`, files in one folder, or copies of the remote files.

    Copies keep their names, in one folder, and are kept between runs. Without them a checkpoint
    takes thousands of small requests, and every epoch reads all records.
    """
    if not is_remote(paths[0]):
        return list(paths)
    stats = [(path, stat(path)) for path in paths]
    versions = "".join(f"{path} {stat.length} {stat.mtime_nsec}\n" for path, stat in stats)
    folder = cache_folder() / hashlib.sha256(versions.encode()).hexdigest()[:24]
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        local = folder / os.path.basename(path)
        if not local.exists():
            temporary = f"{local}.{uuid.uuid4().hex[:8]}.tmp"
            _download(path, temporary)
            os.replace(temporary, local)
    return [str(folder / os.path.basename(path)) for path in paths]


@retry_remote
def _download(path: str, local: str) -> None:
    with open_to_read(path) as source, open(local, "wb") as target:
        shutil.copyfileobj(source, target, 2**24)


def cache_folder() -> pathlib.Path:
    """Returns the folder for copies: `ADAPTER_BERT_CACHE`, or one in the user's cache folder."""
    default = os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "adapter_bert_tf")
    return pathlib.Path(os.environ.get("ADAPTER_BERT_CACHE", default)).expanduser()
