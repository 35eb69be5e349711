"""What a call of `AdapterModel` is given: names, strings and ids, checked before anything runs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.base.config import BertConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview, printable

# Of the encoder's inputs, and what of a base's configuration bounds their values.
BOUNDS = {"input_word_ids": "vocab_size", "input_mask": None, "input_type_ids": "type_vocab_size"}


def strings(values: Any, what: str) -> list[str]:
    """A list or tuple of strings as a list. Raises `InputError`, which begins with `what`."""
    if isinstance(values, list | tuple) and all(isinstance(value, str) for value in values):
        return list(values)
    raise InputError(f"{what} a list of strings. Received: {preview(values)}")


def check_name(name: Any, taken: list[str]) -> None:
    """A name that a user gives is one line, and no other adapter's. Raises `InputError`."""
    if not isinstance(name, str) or not name.strip() or name != printable(name):
        raise InputError(
            "An adapter needs a name that no other has, one line of text. Received: "
            f"{preview(name)}"
        )
    check_is_new(name, taken)


def check_is_new(name: str, taken: list[str]) -> None:
    """Two adapters cannot have one name. Raises `InputError`."""
    if name in taken:
        raise InputError(
            f"An adapter needs a name that no other has. There are {preview(taken)}. "
            f"Received: {preview(name)}"
        )


def encoder_inputs(inputs: Any, config: BertConfig) -> dict[str, tf.Tensor]:
    """The encoder's inputs as int32 tensors `[batch, seq]`.

    Args:
      inputs: dict of the three, anything that can be made such a tensor, and what parts ask for.
      config: of the base: how many words, types and positions it has.

    Raises:
      InputError: when one is missing, has another shape, or an id that the base does not have. In a
        graph of the caller's own nothing is known of the ids.
    """
    if not isinstance(inputs, Mapping) or not inputs.keys() >= BOUNDS.keys():
        raise InputError(
            f"Inputs are a dict with {list(BOUNDS)}, as TextEncoder.inputs gives it. Received: "
            f"{preview(list(inputs) if isinstance(inputs, Mapping) else inputs)}"
        )
    found = {name: _int32(name, value) for name, value in inputs.items()}
    _check_shapes({name: found[name].shape for name in BOUNDS}, config)
    for name, bound in BOUNDS.items():
        _check_values(name, found[name], getattr(config, bound) if bound else 2)
    return found


def _int32(name: str, value: Any) -> tf.Tensor:
    try:
        return tf.convert_to_tensor(value, tf.int32)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be whole numbers. Received: {preview(value)}") from error


def _check_shapes(shapes: Mapping[str, tf.TensorShape], config: BertConfig) -> None:
    first, *others = shapes.values()
    alike = first.rank in (2, None) and all(first.is_compatible_with(s) for s in others)
    seq, longest = first[1] if alike and first.rank else None, config.max_sequence_length
    if not alike or (seq is not None and not 1 <= seq <= longest):
        received = {name: tuple(shape) for name, shape in shapes.items() if shape.rank is not None}
        raise InputError(
            f"Inputs are of one shape [batch, seq], with 1 to {longest} word pieces. "
            f"Received: {received}"
        )


def _check_values(name: str, value: tf.Tensor, bound: int) -> None:
    if not hasattr(value, "numpy") or not tf.size(value):
        return
    array: np.ndarray = value.numpy()
    low, high = array.min(), array.max()
    if low < 0 or high >= bound:
        raise InputError(
            f"{name} must be 0 to {bound - 1} for this base. Received: {low} to {high}"
        )
