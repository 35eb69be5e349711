"""JSON records, which say who wrote a folder and from what."""

import hashlib
import json
from typing import Any

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.sanitize import parse_json


def read_record(path: str, limit: int = -1) -> dict[str, Any] | None:
    """The JSON object in a file; None if there is none, or it is damaged.

    Args:
      path: of the file.
      limit: bytes to read at most; a longer file counts as damaged.
    """
    if not storage.exists(path):
        return None
    try:
        record = parse_json(storage.read_bytes(path, limit))
    except (ValueError, tf.errors.OpError):  # The latter for a folder.
        return None
    return record if isinstance(record, dict) else None


def write_record(path: str, values: Any) -> None:
    """Writes a JSON file whole or not at all."""
    storage.write_text(path, json.dumps(values, indent=2) + "\n")


def digest(values: Any) -> str:
    """SHA-256 of values that JSON can hold."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def file_digest(path: str) -> str | None:
    """SHA-256 of a file; None if there is none."""
    if not storage.exists(path) or storage.isdir(path):
        return None
    return hashlib.sha256(storage.read_bytes(path)).hexdigest()
