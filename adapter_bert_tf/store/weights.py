"""Serializes arrays as safetensors, and reads such bytes as untrusted data."""

import hashlib
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

from adapter_bert_tf.errors import Damaged, InputError
from adapter_bert_tf.sanitize import parse_json, preview

DTYPES: dict[str, tuple[str, Any]] = {
    "float32": ("F32", np.float32),
    "float16": ("F16", np.float16),
    "bfloat16": ("BF16", ml_dtypes.bfloat16),
}
DTYPE_BY_CODE = {code: np.dtype(dtype) for code, dtype in DTYPES.values()}
# BERT-large, fully tuned, has 1.3 GB and a header of 50 kB.
MAX_FILE_BYTES, MAX_HEADER_BYTES = 2 << 30, 4 << 20
FORMAT = "adapter_bert_tf"  # The `format` in a file's metadata.


def pack(arrays: Mapping[str, np.ndarray], dtype: str = "float32") -> bytes:
    """Serializes float arrays as safetensors. Raises `InputError` for infinities and NaN."""
    if dtype not in DTYPES:
        raise InputError(f"Weights are stored as one of {list(DTYPES)}. Received: {dtype!r}")
    with np.errstate(over="ignore"):  # `check_finite` reports overflows.
        stored = {n: np.ascontiguousarray(array, DTYPES[dtype][1]) for n, array in arrays.items()}
    check_finite(stored, f"stored as {dtype}")
    content: bytes = safetensors.numpy.save(stored, metadata={"format": FORMAT})
    return content


def check_finite(arrays: Mapping[str, np.ndarray], location: str) -> None:
    """Raises `InputError` for arrays with infinities or NaN."""
    names = [
        name
        for name, array in arrays.items()
        if not np.isfinite(array.astype(np.float32, copy=False)).all()
    ]
    if names:
        raise InputError(f"Some weights are not finite numbers, {location}: {names[:5]}")


def unpack(content: bytes, path: str) -> dict[str, np.ndarray]:
    """Parses bytes that `check_header` has accepted to float32 arrays. Raises `InputError`."""
    try:
        tensors = safetensors.deserialize(content)
    except safetensors.SafetensorError as error:
        raise Damaged(f"{path} is damaged: {error}") from error
    arrays = {
        name: np.frombuffer(tensor["data"], DTYPE_BY_CODE[tensor["dtype"]])
        .reshape(tensor["shape"])
        .astype(np.float32)
        for name, tensor in tensors
    }
    check_finite(arrays, f"in {path}")
    return arrays


def check_header(
    read: Callable[[int], bytes], size: int, shapes: Mapping[str, tuple[int, ...]], path: str
) -> None:
    """Checks a file's header, from its start, before its weights are read. Raises `InputError`."""
    if size > MAX_FILE_BYTES:
        raise Damaged(f"{path} has {size:,} bytes; at most {MAX_FILE_BYTES:,} are read.")
    length = struct.unpack("<Q", read(8))[0] if size >= 8 else size
    if length > min(MAX_HEADER_BYTES, size - 8):
        raise Damaged(
            f"{path} is damaged: it declares a header of {length:,} bytes, the file has {size:,}; "
            f"at most {MAX_HEADER_BYTES:,} are read."
        )
    try:
        header = parse_json(read(length), distinct=True)
        tensors = {
            name: (entry["dtype"], tuple(entry["shape"]))
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"{path} is damaged: its header cannot be read ({error}).") from error
    _check_tensors(tensors, shapes, path)
    expected = 8 + length
    expected += sum(DTYPE_BY_CODE[dtype].itemsize * math.prod(s) for dtype, s in tensors.values())
    if size != expected:
        raise Damaged(f"{path} is damaged: it should have {expected:,} bytes. Received: {size:,}")


def _check_tensors(
    tensors: Mapping[str, tuple[Any, Any]], shapes: Mapping[str, tuple[int, ...]], path: str
) -> None:
    missing = sorted(shapes.keys() - tensors.keys())
    extra = [name[:80] for name in sorted(tensors.keys() - shapes.keys())]
    if missing or extra:
        raise Damaged(
            f"{path} does not match its config. Missing: {missing[:5]}. Unknown: {extra[:5]}"
        )
    for name, (dtype, shape) in tensors.items():
        if not isinstance(dtype, str) or dtype not in DTYPE_BY_CODE:
            raise Damaged(
                f"{path}: {name} must be one of {list(DTYPE_BY_CODE)}. Received: {preview(dtype)}"
            )
        if shape != tuple(shapes[name]):
            raise Damaged(
                f"{path}: {name} must have the shape {tuple(shapes[name])}. "
                f"Received: {preview(shape)}"
            )


def digest(content: bytes) -> str:
    """Returns the SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()
