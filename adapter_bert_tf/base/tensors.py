"""Reads safetensors files from other libraries: the shapes alone, or the weights."""

import re
from collections.abc import Mapping

import ml_dtypes
import numpy as np
import safetensors

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Damaged, InputError
from adapter_bert_tf.sanitize import preview

FLOATS: Mapping[str, type] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
}
ERRORS = (OSError, safetensors.SafetensorError)


def read_shapes(path: str) -> dict[str, tuple[int, ...]]:
    """Dict from name to shape of all tensors; reads only the file's header. Raises `InputError`."""
    try:
        (local,) = storage.cached(path)
        with safetensors.safe_open(local, framework="numpy") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except ERRORS as error:
        raise _damaged(path, error) from error


def read_tensors(path: str, excluded: str = "(?!)") -> dict[str, np.ndarray]:
    """Dict from name to array, of any of the four float types, of a local or remote file.

    Names that match the regular expression `excluded` are not read. Raises `InputError` when the
    file is damaged, or a tensor is not of floats.
    """
    try:
        items = safetensors.deserialize(storage.read_bytes(storage.cached(path)[0]))
    except ERRORS as error:
        raise _damaged(path, error) from error
    tensors = {name: tensor for name, tensor in items if not re.search(excluded, name)}
    for name, tensor in tensors.items():
        if tensor["dtype"] not in FLOATS:
            raise Damaged(
                f"{path}: {preview(name)} must be of one of the types {list(FLOATS)}. Received: "
                f"{tensor['dtype']}. Save the model again in one of these."
            )
    return {
        name: np.frombuffer(tensor["data"], FLOATS[tensor["dtype"]]).reshape(tensor["shape"])
        for name, tensor in tensors.items()
    }


def _damaged(path: str, error: Exception) -> InputError:
    """The error for a file that cannot be read, with its size."""
    try:
        size = f"it has {storage.stat(path).length:,} bytes"
    except OSError as missing:
        size = storage.reason(missing)
    return Damaged(
        f"Cannot read {path!r}: {storage.reason(error)}; {size}. The file is damaged or "
        "incomplete: copy or download it again."
    )
