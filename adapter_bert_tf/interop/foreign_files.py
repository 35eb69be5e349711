"""Reading the files of other libraries: JSON and safetensors, with the library's name in errors."""

import dataclasses
import os
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.base.tensors import read_tensors
from adapter_bert_tf.errors import Damaged, NotFound, Unsupported
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import schema
from adapter_bert_tf.store.weights import DTYPES, MAX_FILE_BYTES, check_finite


@dataclasses.dataclass(frozen=True)
class Library:
    """A library whose adapters are exchanged.

    Args:
      name: begins all messages.
      advice: how to save an adapter there so that it can be read here.
    """

    name: str
    advice: str

    def require(self, condition: Any, message: str, received: Any, *arguments: str) -> None:
        """Raises `Unsupported` unless a condition holds; `arguments` as in `InputError`."""
        if not condition:
            raise Unsupported(f"{self.name}: {message}. Received: {preview(received)}", *arguments)

    def require_sound(self, condition: Any, message: str, received: Any) -> None:
        """Raises `Damaged` unless a condition holds that is true for all files of the library."""
        if not condition:
            raise Damaged(f"{self.name}: {message}. Received: {preview(received)}")

    def read_object(self, folder: str, name: str) -> dict[str, Any]:
        """Reads a JSON file. Raises `InputError`."""
        path, longest = self._path(folder, name), schema.LARGEST_CONFIG
        values: dict[str, Any] = storage.read_json_object(path, longest, distinct=True)
        return values

    def read_weights(self, folder: str, name: str) -> dict[str, np.ndarray]:
        """Reads the weights of a file, by the library's names. Raises `InputError`."""
        path = self._path(folder, name)
        fits = storage.stat(path).length <= MAX_FILE_BYTES
        self.require_sound(fits, "a file is too large", path)
        tensors: dict[str, np.ndarray] = read_tensors(path)
        dtypes = {str(array.dtype) for array in tensors.values()}
        self.require(dtypes <= set(DTYPES), f"weights must be of {list(DTYPES)}", sorted(dtypes))
        check_finite(tensors, f"in {path}")
        return tensors

    def _path(self, folder: str, name: str) -> str:
        path = os.path.join(folder, name)
        if not storage.exists(path):
            raise NotFound(
                f"{path} does not exist. The folder has {sorted(storage.listdir(folder))[:10]}; a "
                f"`.bin` is a pickle, which is never read. {self.advice}"
            )
        return path


def float32(array: np.ndarray) -> np.ndarray:
    """A weight as float32, a kernel as `[in, out]`; PyTorch's are reversed."""
    return np.ascontiguousarray(array.astype(np.float32).T)
