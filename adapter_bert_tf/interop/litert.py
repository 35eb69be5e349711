"""TensorFlow functions as LiteRT models (TensorFlow Lite)."""

import re
from typing import Any

import tensorflow as tf
from tensorflow.lite.python.convert import ConverterError

from adapter_bert_tf.errors import Unsupported
from adapter_bert_tf.sanitize import preview

OPERATION = re.compile(r"'tf\.(\w+)' op")  # In the converter's message, for each that is missing.


def to_litert(function: Any) -> bytes:
    """Converts a concrete function, with LiteRT's own operations alone. Raises `InputError`.

    The model has the signature `serving_default`, with the names of the function's inputs and
    outputs.
    """
    holder = tf.Module()  # The converter writes names only for functions of an object.
    holder.held = list(function.variables)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], holder)
    try:
        content: bytes = converter.convert()
    except ConverterError as error:
        operations = sorted(set(OPERATION.findall(str(error)))) or preview(str(error), 500)
        raise Unsupported(
            f"LiteRT has no operation for a part of the model: {operations}."
        ) from error
    return content
