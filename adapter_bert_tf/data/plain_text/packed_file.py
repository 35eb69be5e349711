"""Packed sequences in a file of integers, written once and read row by row."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.data.plain_text.packing import Counts
from adapter_bert_tf.errors import Damaged, InputError, Unavailable
from adapter_bert_tf.output.output_dir import Contents, OutputDir
from adapter_bert_tf.sanitize import parse_json

FORMAT = 1  # Version of the file; one of another version is written again.
DONE_FILE = "packed.json"
SEQUENCES = re.compile(r"[0-9a-f]{8}\.sequences")
CONTENTS = Contents(files=(DONE_FILE, SEQUENCES))
Pack = Callable[[Counts], Iterable[np.ndarray]]


@dataclasses.dataclass(frozen=True)
class PackedFile:
    """Sequences of word ids on the local disk.

    Args:
      path: of the file: a row of `length` ids after the other, the last one padded.
      dtype: of an id.
      length: positions of a sequence.
      count: number of sequences.
      last_length: positions of the last sequence without its padding.
      counts: what they were made of.
    """

    path: str
    dtype: str
    length: int
    count: int
    last_length: int
    counts: Counts

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Sequences by their numbers, int32 `[rows, length]`. Raises `InputError`.

        The file is not mapped: if another process shortened it, this process would end.
        """
        size = self.length * np.dtype(self.dtype).itemsize
        try:
            with open(self.path, "rb", buffering=0) as file:
                parts = [os.pread(file.fileno(), size, int(row) * size) for row in rows]
        except OSError as error:
            raise Unavailable(f"Cannot read {self.path}: {storage.reason(error)}") from error
        if any(len(part) < size for part in parts):
            raise Damaged(f"{self.path} has become shorter. Run the command again.")
        values = np.frombuffer(b"".join(parts), self.dtype).reshape(len(rows), self.length)
        return values.astype(np.int32)

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of sequences by their numbers, int32 `[rows]`."""
        lengths = np.where(rows == self.count - 1, self.last_length, self.length)
        return lengths.astype(np.int32)


def cached_sequences(
    folder: str, key: Mapping[str, Any], vocabulary_size: int, length: int, pack: Pack
) -> PackedFile:
    """The sequences for `key`, in a folder of caches; packs them if they are missing or damaged.

    Args:
      folder: of caches; a remote one stands for this machine's own cache.
      key: all values that determine the sequences.
      vocabulary_size: decides the width of an id.
      length: positions of a sequence.
      pack: function that yields int32 `[sequences, length]`, the last shorter, and counts.

    Raises:
      InputError: if they cannot be written, or there are none.
    """
    if storage.is_remote(folder):
        folder = str(storage.cache_folder() / "sequences")
    text = json.dumps({**key, "length": length, "format": FORMAT}, sort_keys=True)
    path = os.path.join(folder, hashlib.sha256(text.encode()).hexdigest()[:16])
    dtype = "<u2" if vocabulary_size <= 1 << 16 else "<i4"
    if found := _read_done(path, dtype, length):
        _remove_stale(path, found)
        return found
    try:
        storage.makedirs(path)
        with OutputDir(path, CONTENTS).lock(wait=True):
            # Another run may have written them in the meantime.
            return _read_done(path, dtype, length) or _write(path, key, dtype, length, pack)
    except OSError as error:
        advice = "Free some space, or choose" if error.errno == errno.ENOSPC else "Choose"
        raise Unavailable(
            f"The word pieces cannot be written to {folder}: {error.strerror or error}. {advice} "
            "another features_dir.",
            "features_dir",
        ) from error


def _write(path: str, key: Mapping[str, Any], dtype: str, length: int, pack: Pack) -> PackedFile:
    """Writes the file, then the one that makes it valid; removes earlier ones."""
    for name in filter(SEQUENCES.fullmatch, storage.listdir(path)):
        storage.remove(os.path.join(path, name))
    name = f"{uuid.uuid4().hex[:8]}.sequences"
    file_path = os.path.join(path, name)
    digest, count, last, counts = hashlib.sha256(), 0, length, Counts()
    try:
        with open(file_path, "wb") as file:
            for rows in pack(counts):
                last = rows.shape[1]
                padded = np.pad(rows, ((0, 0), (0, length - last))).astype(dtype)
                digest.update(padded.data)
                file.write(padded.data)
                count += len(rows)
        if not count:
            raise Damaged("The text files hold no word pieces.")
    except BaseException:
        with contextlib.suppress(OSError):
            storage.remove(file_path)
        raise
    values = {
        **{"name": name, "dtype": dtype, "length": length, "count": count, "last_length": last},
        **{"counts": dataclasses.asdict(counts), "sha256": digest.hexdigest(), "key": dict(key)},
    }
    storage.write_text(os.path.join(path, DONE_FILE), json.dumps(values, indent=2))
    return PackedFile(file_path, dtype, length, count, last, counts)


def _remove_stale(path: str, found: PackedFile) -> None:
    """Removes what killed processes left."""
    current = {DONE_FILE, os.path.basename(found.path)}
    if {*storage.listdir(path)} <= current:
        return
    # If another run holds the folder, or this user may only read it, they stay.
    with contextlib.suppress(InputError, OSError), OutputDir(path, CONTENTS).lock():
        for name in {*storage.listdir(path)} - current:
            if SEQUENCES.fullmatch(name):
                storage.remove(os.path.join(path, name))


def _read_done(path: str, dtype: str, length: int) -> PackedFile | None:
    """The complete file in a folder; None for a missing or damaged one."""
    done = os.path.join(path, DONE_FILE)
    if not os.path.isfile(done):
        return None
    with contextlib.suppress(ValueError, KeyError, TypeError, OSError):
        values = parse_json(storage.read_bytes(done))
        file_path = os.path.join(path, os.path.basename(values["name"]))
        counts = Counts(**values["counts"])
        numbers = [values["count"], values["last_length"], *dataclasses.astuple(counts)]
        if any(type(number) is not int or number < 0 for number in numbers):
            return None
        count, last, *_ = numbers
        found = PackedFile(file_path, dtype, length, count, last, counts)
        size = count * length * np.dtype(dtype).itemsize
        is_sound = 0 < last <= length and 0 < size == os.path.getsize(file_path)
        if is_sound and _digest(file_path) == values["sha256"]:
            return found
    return None


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
