"""Stored outputs of the frozen layers: computed once, read in every epoch."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
import tensorflow as tf

from adapter_bert_tf.errors import InputError, Unavailable


class FrozenOutputs:
    """Hidden states of examples of different lengths, in a temporary file.

    The operating system caches the file, so small data is read from memory. `lengths` are int
    `[examples]`, in word pieces; states are float32. Raises `InputError` when the disk is full.
    """

    def __init__(self, lengths: np.ndarray, hidden_size: int) -> None:
        self.ends = np.cumsum(lengths, dtype=np.int64)
        self.starts = self.ends - lengths
        shape = (int(self.ends[-1]), hidden_size)
        self.megabytes = 4 * shape[0] * hidden_size / 1e6
        file = _allocate_file(4 * shape[0] * hidden_size)
        self._values = np.memmap(file, np.float32, shape=shape)

    def put(self, rows: Sequence[int], values: np.ndarray) -> None:
        """Stores the outputs of examples, float32 `[rows, seq, hidden]`, without the padding."""
        for row, value in zip(rows, values, strict=True):
            start, end = self.starts[row], self.ends[row]
            self._values[start:end] = value[: end - start]

    def padded(self, rows: np.ndarray, width: int) -> np.ndarray:
        """Returns the outputs of examples, float32 `[rows, width, hidden]`, padded with zeros."""
        values = np.zeros((len(rows), width, self._values.shape[1]), np.float32)
        for value, start, end in zip(values, self.starts[rows], self.ends[rows], strict=True):
            value[: end - start] = self._values[start:end]
        return values

    def gather(self, rows: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """Calls `padded` from a graph of this process."""
        # TensorFlow never frees the function: a strong reference would keep the file open.
        padded = weakref.WeakMethod(self.padded)
        values = tf.numpy_function(
            lambda *arguments: padded()(*arguments),  # type: ignore[misc]  # Alive while it trains.
            [rows, width],
            tf.float32,
            stateful=False,
        )
        return tf.ensure_shape(values, [None, None, self._values.shape[1]])


def _allocate_file(size: int) -> BinaryIO:
    """Opens an unnamed file and allocates its space: a full disk would kill the process later."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise _disk_error(size, folder, f"{free / 1e6:,.1f} MB are free")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - The map keeps it open.
    try:
        if hasattr(os, "posix_fallocate"):  # macOS has none.
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)
    except OSError as error:
        raise _disk_error(size, folder, error.strerror) from error
    return file


def _disk_error(size: int, folder: str, reason: str | None) -> InputError:
    return Unavailable(
        f"The outputs of the frozen layers take {size / 1e6:,.1f} MB in {folder}: {reason}. Set "
        "TMPDIR to another folder, or leave out cache_frozen.",
        "cache_frozen",
    )
