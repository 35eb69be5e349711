"""Files made from the data of a run, kept in a folder between runs."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Damaged, InputError, Unavailable
from adapter_bert_tf.output.output_dir import Contents, OutputDir

PART = 1 << 20  # Bytes in memory.


class Kept(Protocol):
    """What is read from a folder of the cache."""

    @property
    def paths(self) -> Sequence[str]:
        """The files that it consists of, in addition to the one that is written last."""


T = TypeVar("T", bound=Kept)


@dataclasses.dataclass(frozen=True)
class Cache(Generic[T]):
    """A folder of caches, in which each key has a folder of its own.

    Args:
      folder: local; a remote one stands for this machine's own cache.
      name: of the folder in this machine's own cache.
      noun: what is kept, in the plural, for messages.
      done: name of the file that is written last, and makes the others valid.
      files: pattern of the names of the others.
      read: function of a folder that returns what it holds; None if that is missing or damaged.
    """

    folder: str
    name: str
    noun: str
    done: str
    files: re.Pattern[str]
    read: Callable[[str], T | None]

    def get(self, key: Mapping[str, Any], write: Callable[[str], T]) -> T:
        """Returns what is kept for `key`; writes it if it is missing or damaged.

        Args:
          key: all values that determine it, for JSON.
          write: function of a folder without other files, which returns what it wrote there.

        Raises:
          InputError: if it cannot be written.
        """
        text = json.dumps(key, sort_keys=True)
        path = os.path.join(self._local, hashlib.sha256(text.encode()).hexdigest()[:16])
        if found := self.read(path):
            self._remove_stale(path, found)
            return found
        try:
            storage.makedirs(path)
            with OutputDir(path, self._contents).lock(wait=True):
                # Another run may have written it in the meantime.
                if found := self.read(path):
                    return found
                for name in filter(self.files.fullmatch, storage.listdir(path)):
                    storage.remove(os.path.join(path, name))
                return write(path)
        except OSError as error:
            advice = "Free some space, or choose" if error.errno == errno.ENOSPC else "Choose"
            raise Unavailable(
                f"The {self.noun} cannot be written to {self._local}: {error.strerror or error}. "
                f"{advice} another features_dir.",
                "features_dir",
            ) from error

    @property
    def _local(self) -> str:
        is_remote = storage.is_remote(self.folder)
        return str(storage.cache_folder() / self.name) if is_remote else self.folder

    @property
    def _contents(self) -> Contents:
        return Contents(files=(self.done, self.files))

    def _remove_stale(self, path: str, found: T) -> None:
        """Removes what killed processes left."""
        current = {self.done, *map(os.path.basename, found.paths)}
        if {*storage.listdir(path)} <= current:
            return
        # If another run holds the folder, or this user may only read it, they stay.
        with contextlib.suppress(InputError, OSError), OutputDir(path, self._contents).lock():
            for name in {*storage.listdir(path)} - current:
                if self.files.fullmatch(name):
                    storage.remove(os.path.join(path, name))


class DigestedFile:
    """A new file, which is written from its beginning to its end, and its digest."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest, self.size = file, hashlib.sha256(), 0

    def write(self, content: Any) -> None:
        """Adds bytes, or the bytes of an array."""
        self._digest.update(content)
        self.size += self._file.write(content)

    def sha256(self) -> str:
        """The digest of what is written, in hexadecimal digits."""
        return self._digest.hexdigest()


@contextlib.contextmanager
def new_files(folder: str, *endings: str) -> Iterator[list[tuple[str, DigestedFile]]]:
    """Opens new files with random names; yields path and file of each. Removes them on errors."""
    stem = os.path.join(folder, uuid.uuid4().hex[:8])
    paths = [f"{stem}.{ending}" for ending in endings]
    try:
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open(path, "wb")) for path in paths]
            yield [(path, DigestedFile(file)) for path, file in zip(paths, files, strict=True)]
    except BaseException:
        for path in paths:
            with contextlib.suppress(OSError):
                storage.remove(path)
        raise


def digest_of(path: str) -> str:
    """SHA-256 of a local file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(PART):
            digest.update(part)
    return digest.hexdigest()


def announce_rows(path: str, offsets: Sequence[int], sizes: Sequence[int]) -> None:
    """Tells the system which parts of a file will be read, so that the disk reads many at a time.

    It matters for files that the system's cache does not hold; errors show when parts are read.
    """
    if not hasattr(os, "posix_fadvise"):  # Not on macOS.
        return
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        for offset, size in zip(offsets, sizes, strict=True):
            os.posix_fadvise(file.fileno(), offset, size, os.POSIX_FADV_WILLNEED)


def read_rows(path: str, offsets: Sequence[int], sizes: Sequence[int]) -> bytes:
    """Parts of a local file by offset and size in bytes, one after the other. Raises `InputError`.

    The file is not mapped: if another process shortened it, this process would end.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            number = file.fileno()
            pairs = zip(sizes, offsets, strict=True)
            content = b"".join([os.pread(number, size, offset) for size, offset in pairs])
    except OSError as error:
        raise Unavailable(f"Cannot read {path}: {storage.reason(error)}") from error
    if len(content) < sum(sizes):
        raise Damaged(f"{path} has become shorter. Run the command again.")
    return content
