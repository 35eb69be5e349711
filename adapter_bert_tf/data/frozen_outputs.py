"""What frozen layers give for each example: computed once, read in every epoch."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
import tensorflow as tf

from adapter_bert_tf.errors import InputError


class FrozenOutputs:
    """Hidden states of examples of different lengths, in a file that goes with the process.

    The system keeps in memory what fits there, so a small set is read from memory.

    Args:
      lengths: int `[examples]`, in word pieces.
      hidden_size: of a word piece, float32.

    Raises:
      InputError: when the disk has no room for it.
    """

    def __init__(self, lengths: np.ndarray, hidden_size: int) -> None:
        self.ends = np.cumsum(lengths, dtype=np.int64)
        self.starts = self.ends - lengths
        shape = (int(self.ends[-1]), hidden_size)
        self.megabytes = 4 * shape[0] * hidden_size / 1e6
        self._values = np.memmap(_new_file(4 * shape[0] * hidden_size), np.float32, shape=shape)

    def put(self, rows: Sequence[int], values: np.ndarray) -> None:
        """Keeps the values of examples.

        Args:
          rows: their places.
          values: float32 `[rows, seq, hidden]`; what is behind an example's length is left out.
        """
        for row, value in zip(rows, values, strict=True):
            start, end = self.starts[row], self.ends[row]
            self._values[start:end] = value[: end - start]

    def padded(self, rows: np.ndarray, width: int) -> np.ndarray:
        """The values of examples, float32 `[rows, width, hidden]`, zeros behind their lengths."""
        found = np.zeros((len(rows), width, self._values.shape[1]), np.float32)
        for place, (start, end) in enumerate(zip(self.starts[rows], self.ends[rows], strict=True)):
            found[place, : end - start] = self._values[start:end]
        return found

    def gather(self, rows: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """`padded`, in a graph of this process, which does not keep the values alive."""
        # TensorFlow keeps the function for as long as the process lives.
        padded = weakref.WeakMethod(self.padded)
        found = tf.numpy_function(
            lambda *given: padded()(*given),  # type: ignore[misc]  # It is there while it trains.
            [rows, width],
            tf.float32,
            stateful=False,
        )
        return tf.ensure_shape(found, [None, None, self._values.shape[1]])


def _new_file(size: int) -> BinaryIO:
    """A file without a name; its place is taken now, as a full disk would end the process later."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise _no_place(size, folder, f"{free / 1e6:,.1f} MB are free")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - It is mapped as long as it is used.
    try:
        if hasattr(os, "posix_fallocate"):  # Not so on macOS.
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)
    except OSError as error:
        raise _no_place(size, folder, error.strerror) from error
    return file


def _no_place(size: int, folder: str, there: str | None) -> InputError:
    return InputError(
        f"What the frozen layers give takes {size / 1e6:,.1f} MB in {folder}: {there}. Let TMPDIR "
        "name another folder, or leave out cache_frozen.",
        "cache_frozen",
    )
