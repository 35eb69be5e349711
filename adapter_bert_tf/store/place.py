"""Where an adapter directory may be written, and which run wrote the one that is there."""

import os
import struct
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.received import parse_json, shown
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store.card import is_card
from adapter_bert_tf.store.folders import require_no_link
from adapter_bert_tf.store.weights import FORMAT, LARGEST_HEADER

CONFIG, WEIGHTS, CARD = "adapter_config.json", "adapter.safetensors", "README.md"
LARGEST_CARD = 1 << 20


def require_adapter_place(folder: str) -> None:
    """An adapter may be written where nothing is, or an adapter of ours. Raises `InputError`."""
    require_no_link(folder)
    if not storage.exists(folder):
        return
    names = storage.listdir(folder) if storage.isdir(folder) else []
    other = [name for name in names if name not in (CONFIG, WEIGHTS, CARD)]
    if other or not storage.isdir(folder):
        raise InputError(
            f"{folder!r} is no adapter directory and will not be replaced: it "
            f"holds {other[:5] or 'a file'}. Choose another folder."
        )
    if names and not is_ours(folder):
        raise InputError(
            f"{folder!r} holds {sorted(names)}, which this package did not write, and will not be "
            "replaced. Choose another folder."
        )


def require_same_task(folder: str, config: Mapping[str, Any]) -> None:
    """An adapter that is in a folder must be of the same name and labels. Raises `InputError`."""
    theirs = _config(folder)
    if theirs is None:
        return
    same = ("labels", "head")
    name, ours = contents.name_of(theirs), contents.name_of(config)
    if name != ours or any(theirs[key] != config[key] for key in same):
        raise InputError(
            f"{folder!r} holds the adapter {shown(name)} with {_said(theirs)}, and {shown(ours)} "
            f"with {_said(config)} is to go there. Choose another folder, or say overwrite=True.",
            "overwrite=True",
        )


def _said(config: Mapping[str, Any]) -> str:
    labels = config["labels"]
    return f"the labels {shown(labels)}" if labels else "a score"


def is_ours(folder: str) -> bool:
    """Whether one of the files of an adapter directory, which may be damaged, is of our making.

    A copy to a bucket that was cut short may hold any of them, and damage may be in any of them.
    """
    return _config(folder) is not None or _has_our_weights(folder) or _has_our_card(folder)


def run_of(folder: str) -> str | None:
    """The digest of the run that wrote the adapter in a folder; None if it does not say."""
    run = (_config(folder) or {}).get("run")
    return run if isinstance(run, str) else None


def _config(folder: str) -> dict[str, object] | None:
    """What a config of ours says, unchecked; None if there is none, or another library's."""
    content = _read(os.path.join(folder, CONFIG), schema.LARGEST_CONFIG)
    try:
        config = parse_json(content, distinct=True)
    except ValueError:
        return None
    ours = isinstance(config, dict) and checks.FIELDS.keys() <= config.keys()
    return config if ours else None


def _has_our_weights(folder: str) -> bool:
    path = os.path.join(folder, WEIGHTS)
    beginning = _read(path, 8)
    if len(beginning) < 8:
        return False
    length = min(struct.unpack("<Q", beginning)[0], LARGEST_HEADER)
    try:
        header = parse_json(_read(path, 8 + length)[8:])
    except ValueError:
        return False
    return isinstance(header, dict) and header.get("__metadata__") == {"format": FORMAT}


def _has_our_card(folder: str) -> bool:
    return is_card(_read(os.path.join(folder, CARD), LARGEST_CARD).decode("utf-8", "replace"))


def _read(path: str, limit: int) -> bytes:
    """The first bytes of a file; none if there is no regular file."""
    if storage.is_link(path) or (not storage.is_remote(path) and not os.path.isfile(path)):
        return b""
    try:
        content: bytes = storage.read_bytes(path, limit)
    except tf.errors.NotFoundError:
        return b""
    return content
