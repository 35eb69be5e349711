"""YAML files of settings."""

import datetime
import sys
from typing import Any

from adapter_bert_tf.config.yaml_values import parse_yaml
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview, truncate

SCALARS = (str, int, float, datetime.date)
LARGEST_FILE = 4 << 20


def read_yaml(path: str, flag: str, expected: str = "`setting: value` lines") -> dict[Any, Any]:
    """The dict in a YAML file.

    Args:
      path: local or gs://.
      flag: that names the file, for messages.
      expected: content of the file, for messages.

    Raises:
      InputError: when the file cannot be read or holds something else.
    """
    try:
        content = parse_yaml(_read_text(path, flag))
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {flag}={path}: {truncate(str(error), 400)}") from error
    content = {} if content is None else content
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold {expected}. Received: {preview(content)}")
    return content


def _read_text(path: str, flag: str) -> str:
    if "://" not in path:
        with open(path, "rb") as file:
            return _decode(file.read(LARGEST_FILE + 1))
    import tensorflow as tf

    from adapter_bert_tf import storage

    try:
        return _decode(storage.read_bytes(path, LARGEST_FILE + 1))
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read {flag}={path}: {storage.reason(error)}") from error


def _decode(content: bytes) -> str:
    if len(content) > LARGEST_FILE:
        raise ValueError(f"it has more than {LARGEST_FILE:,} bytes")
    return content.decode("utf-8")


def as_text(value: Any) -> str:
    """A scalar of a file as it would stand on the command line. Raises `InputError`."""
    is_scalar = isinstance(value, SCALARS)
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        is_scalar = False  # Python does not write out numbers of 4,300 digits.
    if not is_scalar or "\0" in str(value):
        raise InputError(f"must be one value. Received: {preview(value)}")
    return str(value)
