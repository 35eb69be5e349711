"""Checks of the arguments of `AdapterModel`: names, strings and ids."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.base.config import BertConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview, printable

# Inputs of the encoder, and the field of `BertConfig` that bounds their values.
INPUT_BOUNDS = {
    "input_word_ids": "vocab_size",
    "input_mask": None,
    "input_type_ids": "type_vocab_size",
}


def require_strings(values: Any, subject: str) -> list[str]:
    """A list or tuple of strings as a list. Raises `InputError`, which begins with `subject`."""
    if isinstance(values, list | tuple) and all(isinstance(value, str) for value in values):
        return list(values)
    raise InputError(f"{subject} a list of strings. Received: {preview(values)}")


def check_name(name: Any, existing: list[str], is_stored: bool = False) -> None:
    """Raises `InputError` unless a name is unique and, if it is not stored, one line of text."""
    is_text = isinstance(name, str) and bool(name.strip()) and name == printable(name)
    problem = "" if is_stored or is_text else " and one line of text"
    if name in existing:
        problem = f". Existing names: {preview(existing)}"
    if problem:
        raise InputError(
            f"The name of an adapter must be unique{problem}. Received: {preview(name)}"
        )


def encoder_inputs(inputs: Any, config: BertConfig) -> dict[str, tf.Tensor]:
    """The inputs of the encoder and of modules as int32 `[batch, seq]`. Raises `InputError`."""
    if not isinstance(inputs, Mapping) or not inputs.keys() >= INPUT_BOUNDS.keys():
        received = list(inputs) if isinstance(inputs, Mapping) else inputs
        raise InputError(
            f"Inputs must be a dict with {list(INPUT_BOUNDS)}; TextEncoder.inputs makes one. "
            f"Received: {preview(received)}"
        )
    tensors = {name: _int32(name, value) for name, value in inputs.items()}
    _check_shapes({name: tensors[name].shape for name in INPUT_BOUNDS}, config)
    for name, bound in INPUT_BOUNDS.items():
        _check_values(name, tensors[name], getattr(config, bound) if bound else 2)
    return tensors


def _int32(name: str, value: Any) -> tf.Tensor:
    try:
        if isinstance(value, np.ndarray | list | tuple):
            _check_whole(np.asarray(value))
        return tf.convert_to_tensor(value, tf.int32)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be whole numbers. Received: {preview(value)}") from error


def _check_whole(array: np.ndarray) -> None:
    """Raises `ValueError` for what TensorFlow would round or wrap around: 1.5, or 2**33."""
    limits = np.iinfo(np.int32)
    is_whole = array.dtype.kind in "iub" or not array.size
    if not is_whole or (array.size and not limits.min <= array.min() <= array.max() <= limits.max):
        raise ValueError("not int32")


def _check_shapes(shapes: Mapping[str, tf.TensorShape], config: BertConfig) -> None:
    first, *others = shapes.values()
    compatible = first.rank in (2, None) and all(first.is_compatible_with(s) for s in others)
    seq, max_length = first[1] if compatible and first.rank else None, config.max_sequence_length
    if not compatible or (seq is not None and not 1 <= seq <= max_length):
        received = {name: tuple(shape) for name, shape in shapes.items() if shape.rank is not None}
        raise InputError(
            f"Inputs must have the same shape [batch, seq], with 1 to {max_length} word pieces. "
            f"Received: {received}"
        )


def _check_values(name: str, value: tf.Tensor, bound: int) -> None:
    if not hasattr(value, "numpy") or not tf.size(value):
        return
    array: np.ndarray = value.numpy()
    low, high = array.min(), array.max()
    if low < 0 or high >= bound:
        raise InputError(f"{name} must be 0 to {bound - 1} in this base. Received: {low} to {high}")
