"""Safetensors files of others: their shapes without their weights, and their weights."""

import re
from collections.abc import Mapping

import ml_dtypes
import numpy as np
import safetensors
import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview, truncate

FLOATS: Mapping[str, type] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
}
ERRORS = (tf.errors.OpError, OSError, safetensors.SafetensorError)


def read_shapes(path: str) -> dict[str, tuple[int, ...]]:
    """Dict from name to shape, of all tensors in a file; only its header is read.

    Raises:
      InputError: when it is damaged or not whole.
    """
    try:
        (local,) = storage.cached(path)
        with safetensors.safe_open(local, framework="numpy") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except ERRORS as error:
        raise _damaged(path, error) from error


def read_tensors(path: str, left_out: str = "(?!)") -> dict[str, np.ndarray]:
    """Dict from name to float array, of any of the four types.

    Args:
      path: of the file, local or remote.
      left_out: regular expression of names that are not read, whatever their type.

    Raises:
      InputError: when it is damaged, not whole, or a tensor holds no floating-point numbers.
    """
    try:
        found = safetensors.deserialize(storage.read_bytes(storage.cached(path)[0]))
    except ERRORS as error:
        raise _damaged(path, error) from error
    tensors = {name: tensor for name, tensor in found if not re.search(left_out, name)}
    for name, tensor in tensors.items():
        if tensor["dtype"] not in FLOATS:
            raise InputError(
                f"{path}: {preview(name)} must be of one of the types {list(FLOATS)}. Received: "
                f"{tensor['dtype']}. Save the model again in one of these."
            )
    return {
        name: np.frombuffer(tensor["data"], FLOATS[tensor["dtype"]]).reshape(tensor["shape"])
        for name, tensor in tensors.items()
    }


def _damaged(path: str, error: Exception) -> InputError:
    """What to say of a file that cannot be read, with what is there of it."""
    try:
        size = f"it has {storage.stat(path).length:,} bytes"
    except tf.errors.OpError as missing:
        size = storage.reason(missing)
    said = (
        storage.reason(error) if isinstance(error, tf.errors.OpError) else truncate(str(error), 400)
    )
    return InputError(
        f"Cannot read {path!r}: {said}; {size}. It is damaged or not whole: copy or download it "
        "again."
    )
