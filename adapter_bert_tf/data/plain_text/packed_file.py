"""Packed sequences in a file of integers, written once and read row by row."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.data.on_disk.cache import Cache, digest_of, new_files, read_rows
from adapter_bert_tf.data.plain_text.packing import Counts
from adapter_bert_tf.errors import Damaged
from adapter_bert_tf.sanitize import parse_json

FORMAT = 1  # Version of the file; one of another version is written again.
DONE_FILE = "packed.json"
SEQUENCES = re.compile(r"[0-9a-f]{8}\.sequences")
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

    @property
    def paths(self) -> tuple[str, ...]:
        """The only file."""
        return (self.path,)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Sequences by their numbers, int32 `[rows, length]`. Raises `InputError`."""
        size = self.length * np.dtype(self.dtype).itemsize
        content = read_rows(self.path, (rows * size).tolist(), [size] * len(rows))
        values = np.frombuffer(content, self.dtype).reshape(len(rows), self.length)
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
    dtype = "<u2" if vocabulary_size <= 1 << 16 else "<i4"
    cache = Cache(
        folder,
        "sequences",
        "word pieces",
        DONE_FILE,
        SEQUENCES,
        lambda path: _read_done(path, dtype, length),
    )
    return cache.get(
        {**key, "length": length, "format": FORMAT},
        lambda path: _write(path, key, dtype, length, pack),
    )


def _write(path: str, key: Mapping[str, Any], dtype: str, length: int, pack: Pack) -> PackedFile:
    """Writes the file, then the one that makes it valid."""
    count, last, counts = 0, length, Counts()
    with new_files(path, "sequences") as ((file_path, file),):
        for rows in pack(counts):
            last = rows.shape[1]
            padded = np.pad(rows, ((0, 0), (0, length - last))).astype(dtype)
            file.write(padded.data)
            count += len(rows)
        if not count:
            raise Damaged("The text files hold no word pieces.")
    values = {
        **{"name": os.path.basename(file_path), "dtype": dtype, "length": length},
        **{"count": count, "last_length": last},
        **{"counts": dataclasses.asdict(counts), "sha256": file.sha256(), "key": dict(key)},
    }
    storage.write_text(os.path.join(path, DONE_FILE), json.dumps(values, indent=2))
    return PackedFile(file_path, dtype, length, count, last, counts)


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
        if is_sound and digest_of(file_path) == values["sha256"]:
            return found
    return None
