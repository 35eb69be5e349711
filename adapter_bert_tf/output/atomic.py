"""Atomic replacement of files and folders."""

import contextlib
import errno
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Occupied
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.permissions import require_writable
from adapter_bert_tf.retry import retry_remote

TEMPORARY = ".tmp-"  # In the name of a folder that is being written, or about to be removed.
UNFINISHED = ".unfinished-"  # Begins the name of a file that is being written.
ATTEMPTS = 100  # Of several processes that write the same folder, one is last.
# What a rename raises when another process put its own folder there first.
TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


def require_creatable(path: str) -> None:
    """Raises `InputError` if a file or folder cannot be made at a path.

    A link is refused: it is unclear whether the link or its target should be replaced.
    """
    if storage.is_link(path):
        target = os.path.realpath(path)
        raise Occupied(
            f"{path!r} is a symbolic link to {target!r} and will not be replaced. Name its target, "
            "or remove the link."
        )
    if storage.is_remote(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not storage.isdir(above):
        actual = "a file" if storage.exists(above) else "a broken link"
        raise Occupied(
            f"{path!r} cannot be made: {above!r} is {actual}, not a folder. Choose another folder."
        )
    require_writable(above)


def require_free(folder: str) -> None:
    """Raises `InputError` if there is anything but an empty folder at a path."""
    require_creatable(folder)
    if storage.exists(folder) and (not storage.isdir(folder) or storage.listdir(folder)):
        raise Occupied(
            f"{folder!r} exists already and will not be replaced. Choose another folder, or remove "
            "it first."
        )


@contextlib.contextmanager
def replace_folder(
    folder: str, last: str, check: Callable[[str], None] = require_creatable
) -> Iterator[str]:
    """Yields a temporary folder, which replaces `folder` if no error occurs.

    The old content is moved aside first and removed last, so the old or the new content always
    exists under some name. A remote folder cannot be moved in one step: it is filled from a local
    one.

    Args:
      folder: local or remote.
      last: name of the file without which the folder counts as empty; a remote one gets it last.
      check: raises `InputError` if `folder` may not be replaced; called before and after writing.
    """
    check(folder)
    if storage.is_remote(folder):
        with tempfile.TemporaryDirectory() as above:
            local = os.path.join(above, "folder")
            yield local
            check(folder)
            storage.upload(local, folder, last)
        return
    temporary = _temporary_name(folder)
    try:
        yield temporary
        check(folder)
        _swap(temporary, folder)
    finally:
        storage.rmtree(temporary)


def _temporary_name(folder: str) -> str:
    return f"{folder.rstrip('/')}{TEMPORARY}{uuid.uuid4().hex[:12]}"


def _swap(temporary: str, folder: str) -> None:
    for attempt in range(ATTEMPTS):
        aside = _temporary_name(folder)
        require_creatable(folder)
        with contextlib.suppress(FileNotFoundError):  # Nothing was there.
            os.rename(folder, aside)
        try:
            os.rename(temporary, folder)
            return
        except OSError as error:
            if error.errno not in TAKEN:
                if storage.exists(aside):
                    os.rename(aside, folder)
                raise
            if attempt == ATTEMPTS - 1:
                raise
        finally:
            storage.rmtree(aside)


@contextlib.contextmanager
def replace_file(path: str, overwrite: bool) -> Iterator[str]:
    """Yields a local path to write to; the file is moved to `path` if no error occurs.

    Raises `InputError` if another process has made `path`; the message names the written file.
    """
    folder = tempfile.gettempdir() if storage.is_remote(path) else os.path.dirname(path) or "."
    storage.makedirs(folder)
    temporary = _new_file(folder, UNFINISHED, path)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())
        try:
            _move(temporary, path, overwrite)
        except (FileExistsError, IsADirectoryError) as error:
            kept = _new_file(folder, "answers-", path)
            os.replace(temporary, kept)
            raise Occupied(
                f"Another process has made {path!r}, which is not replaced. The answers are in "
                f"{kept!r}."
            ) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def _new_file(folder: str, beginning: str, path: str) -> str:
    """Makes an empty file with a unique name and the ending of `path`."""
    packed = ".gz" if path.endswith(".gz") else ""
    ending = os.path.splitext(path.removesuffix(".gz"))[1] + packed
    number, made = tempfile.mkstemp(ending, beginning, folder)
    os.close(number)
    return made


def _move(written: str, path: str, overwrite: bool) -> None:
    """Moves a file. Raises `FileExistsError` if `path` exists."""
    if storage.is_remote(path):
        if not overwrite and storage.exists(path):
            raise FileExistsError(path)
        _upload(path, written)
    elif overwrite:
        os.replace(written, path)
    else:
        try:
            os.link(written, path)  # Unlike a rename, a hard link replaces nothing.
        except FileExistsError:
            raise
        except OSError:  # Some file systems have no hard links.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            os.replace(written, path)


@retry_remote
def _upload(path: str, local: str) -> None:
    tf.io.gfile.copy(local, path, overwrite=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
