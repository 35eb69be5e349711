"""Arrays to safetensors bytes and back; what comes from a file is believed in nothing."""

import hashlib
import math
import struct

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import parse_json, preview

DTYPES = {
    "float32": ("F32", np.float32),
    "float16": ("F16", np.float16),
    "bfloat16": ("BF16", ml_dtypes.bfloat16),
}
BY_CODE = dict(DTYPES.values())
# Of a file: BERT-large, all of it tuned, has 1.3 GB, and a header of 50 kB.
LARGEST_FILE, LARGEST_HEADER = 2 << 30, 4 << 20
FORMAT = "adapter_bert_tf"  # What a file of ours says of itself.


def pack(arrays, dtype="float32"):
    """Safetensors bytes of float arrays, stored in `dtype`.

    Raises:
      InputError: when a value is not finite, or too large for `dtype`.
    """
    if dtype not in DTYPES:
        raise InputError(f"Weights are stored as one of {list(DTYPES)}. Received: {dtype!r}")
    with np.errstate(over="ignore"):  # What overflows is found below, and named.
        arrays = {
            name: np.ascontiguousarray(array, DTYPES[dtype][1]) for name, array in arrays.items()
        }
    check_finite(arrays, f"stored as {dtype}")
    return safetensors.numpy.save(arrays, metadata={"format": FORMAT})


def check_finite(arrays, where):
    """Raises `InputError` that names the arrays with infinities or NaN."""
    wrong = [
        name
        for name, array in arrays.items()
        if not np.isfinite(array.astype(np.float32, copy=False)).all()
    ]
    if wrong:
        raise InputError(f"Not every weight is a finite number, {where}: {wrong[:5]}")


def unpack(content, where):
    """Dict from name to float32 array.

    Args:
      content: bytes of a safetensors file whose header `check_header` has accepted.
      where: its path, for messages.

    Raises:
      InputError: when the bytes are no such file, or hold a number that is not finite.
    """
    try:
        tensors = safetensors.deserialize(content)
    except safetensors.SafetensorError as error:
        raise InputError(f"{where} is damaged: {error}") from error
    arrays = {
        name: np.frombuffer(tensor["data"], BY_CODE[tensor["dtype"]])
        .reshape(tensor["shape"])
        .astype(np.float32)
        for name, tensor in tensors
    }
    check_finite(arrays, f"in {where}")
    return arrays


def check_header(read, size, shapes, where):
    """Checks what a file says of itself before its weights are read.

    Args:
      read: function of a number of bytes, which reads on from the file's start.
      size: of the file in bytes.
      shapes: dict from name to shape, all that may and must be in it.
      where: its path, for messages.

    Raises:
      InputError: when the file is too large, or holds other tensors, shapes or types.
    """
    if size > LARGEST_FILE:
        raise InputError(f"{where} has {size:,} bytes; at most {LARGEST_FILE:,} are read.")
    length = struct.unpack("<Q", read(8))[0] if size >= 8 else size
    if length > min(LARGEST_HEADER, size - 8):
        raise InputError(
            f"{where} is damaged: its header should have {length:,} bytes, the file "
            f"has {size:,}; at most {LARGEST_HEADER:,} are read."
        )
    try:
        header = parse_json(read(length), distinct=True)
        found = {
            name: (entry["dtype"], tuple(entry["shape"]))
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{where} is damaged: its header cannot be read ({error}).") from error
    _check_tensors(found, shapes, where)
    expected = (
        8
        + length
        + sum(
            np.dtype(BY_CODE[dtype]).itemsize * math.prod(shape) for dtype, shape in found.values()
        )
    )
    if size != expected:
        raise InputError(
            f"{where} is damaged: it should have {expected:,} bytes. Received: {size:,}"
        )


def _check_tensors(found, shapes, where):
    other = sorted(set(found) ^ set(shapes))
    if other:
        missing = [name for name in other if name in shapes]
        extra = [name[:80] for name in other if name not in shapes]
        raise InputError(
            f"{where} does not hold what its config describes. Missing: "
            f"{missing[:5]}. Unknown: {extra[:5]}"
        )
    for name, (dtype, shape) in found.items():
        if not isinstance(dtype, str) or dtype not in BY_CODE:
            raise InputError(
                f"{where}: {name} must be one of {list(BY_CODE)}. Received: {preview(dtype)}"
            )
        if shape != tuple(shapes[name]):
            raise InputError(
                f"{where}: {name} must have the shape {tuple(shapes[name])}. "
                f"Received: {preview(shape)}"
            )


def digest(content):
    """SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()
