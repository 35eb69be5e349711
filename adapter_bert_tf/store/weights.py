"""Serializes arrays as safetensors, and reads such bytes as untrusted data."""

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
DTYPE_BY_CODE = dict(DTYPES.values())
# BERT-large, fully tuned, has 1.3 GB and a header of 50 kB.
MAX_FILE_BYTES, MAX_HEADER_BYTES = 2 << 30, 4 << 20
FORMAT = "adapter_bert_tf"  # The `format` in a file's metadata.


def pack(arrays, dtype="float32"):
    """Serializes float arrays as safetensors in `dtype`.

    Raises:
      InputError: when a value is not finite, or too large for `dtype`.
    """
    if dtype not in DTYPES:
        raise InputError(f"Weights are stored as one of {list(DTYPES)}. Received: {dtype!r}")
    with np.errstate(over="ignore"):  # `check_finite` reports overflows.
        arrays = {
            name: np.ascontiguousarray(array, DTYPES[dtype][1]) for name, array in arrays.items()
        }
    check_finite(arrays, f"stored as {dtype}")
    return safetensors.numpy.save(arrays, metadata={"format": FORMAT})


def check_finite(arrays, location):
    """Raises `InputError` for arrays with infinities or NaN."""
    names = [
        name
        for name, array in arrays.items()
        if not np.isfinite(array.astype(np.float32, copy=False)).all()
    ]
    if names:
        raise InputError(f"Some weights are not finite numbers, {location}: {names[:5]}")


def unpack(content, path):
    """Parses safetensors bytes to a dict from name to float32 array.

    Args:
      content: bytes of a safetensors file whose header `check_header` has accepted.
      path: path for messages.

    Raises:
      InputError: when the bytes are invalid, or hold a number that is not finite.
    """
    try:
        tensors = safetensors.deserialize(content)
    except safetensors.SafetensorError as error:
        raise InputError(f"{path} is damaged: {error}") from error
    arrays = {
        name: np.frombuffer(tensor["data"], DTYPE_BY_CODE[tensor["dtype"]])
        .reshape(tensor["shape"])
        .astype(np.float32)
        for name, tensor in tensors
    }
    check_finite(arrays, f"in {path}")
    return arrays


def check_header(read, size, shapes, path):
    """Checks the header of a file before its weights are read.

    Args:
      read: function that reads a number of bytes, from the file's start.
      size: size of the file in bytes.
      shapes: dict from name to the required shape, for all tensors.
      path: path for messages.

    Raises:
      InputError: when the file is too large, or has other tensors, shapes or dtypes.
    """
    if size > MAX_FILE_BYTES:
        raise InputError(f"{path} has {size:,} bytes; at most {MAX_FILE_BYTES:,} are read.")
    length = struct.unpack("<Q", read(8))[0] if size >= 8 else size
    if length > min(MAX_HEADER_BYTES, size - 8):
        raise InputError(
            f"{path} is damaged: it declares a header of {length:,} bytes, the file "
            f"has {size:,}; at most {MAX_HEADER_BYTES:,} are read."
        )
    try:
        header = parse_json(read(length), distinct=True)
        tensors = {
            name: (entry["dtype"], tuple(entry["shape"]))
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged: its header cannot be read ({error}).") from error
    _check_tensors(tensors, shapes, path)
    expected = (
        8
        + length
        + sum(
            np.dtype(DTYPE_BY_CODE[dtype]).itemsize * math.prod(shape)
            for dtype, shape in tensors.values()
        )
    )
    if size != expected:
        raise InputError(
            f"{path} is damaged: it should have {expected:,} bytes. Received: {size:,}"
        )


def _check_tensors(tensors, shapes, path):
    different = sorted(set(tensors) ^ set(shapes))
    if different:
        missing = [name for name in different if name in shapes]
        extra = [name[:80] for name in different if name not in shapes]
        raise InputError(
            f"{path} does not match its config. Missing: {missing[:5]}. Unknown: {extra[:5]}"
        )
    for name, (dtype, shape) in tensors.items():
        if not isinstance(dtype, str) or dtype not in DTYPE_BY_CODE:
            raise InputError(
                f"{path}: {name} must be one of {list(DTYPE_BY_CODE)}. Received: {preview(dtype)}"
            )
        if shape != tuple(shapes[name]):
            raise InputError(
                f"{path}: {name} must have the shape {tuple(shapes[name])}. "
                f"Received: {preview(shape)}"
            )


def digest(content):
    """Returns the SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()
