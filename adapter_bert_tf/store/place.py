"""Where an adapter directory may be written, and which run wrote the one that is there."""

import os
import struct
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import parse_json, preview
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store.card import is_card
from adapter_bert_tf.store.folders import (
    CONFIG,
    INSIDE,
    MEMBERS,
    require_outside_fusions,
    require_place,
)
from adapter_bert_tf.store.multitask import task_title
from adapter_bert_tf.store.weights import FORMAT, MAX_HEADER_BYTES

WEIGHTS, CARD = "adapter.safetensors", "README.md"
LARGEST_CARD = 1 << 20


def require_adapter_place(folder: str) -> None:
    """An adapter may be written where nothing is, or an adapter of ours. Raises `InputError`."""
    require_place(folder)
    require_outside_fusions(folder)
    if storage.exists(folder):
        _require_ours(folder)


def _require_ours(folder: str) -> None:
    """What is in a folder must be an adapter of ours and nothing else. Raises `InputError`."""
    names = storage.listdir(folder) if storage.isdir(folder) else []
    names = [name.rstrip("/") for name in names]
    other = [name for name in names if name not in (CONFIG, WEIGHTS, CARD, *INSIDE)]
    if other or not storage.isdir(folder):
        raise InputError(
            f"{folder!r} is no adapter directory and will not be replaced: it "
            f"holds {other[:5] or 'a file'}. Choose another folder."
        )
    for name in (name for name in INSIDE if name in names):
        what = " of the ".join(INSIDE[name])
        _require_inside(os.path.join(folder, name), what, _known(_config(folder), name))
    if names and not is_ours(folder):
        raise InputError(
            f"{folder!r} holds {sorted(names)}, which this package did not write, and will not be "
            "replaced. Choose another folder."
        )


def _known(config: Mapping[str, Any] | None, inside: str) -> set[str] | None:
    """Names of the folders that an adapter directory has in `members` or in `tasks`.

    None where its config is damaged and does not say who they are.
    """
    if config is None:
        return None
    listed = config.get(inside)
    if not isinstance(listed, list):
        return set()
    if inside == MEMBERS:
        return {str(digest)[:16] for digest in listed}
    return {task_title(task) for task in listed if isinstance(task, dict) and "task" in task}


def _require_inside(folder: str, what: str, known: set[str] | None) -> None:
    """What an adapter holds may be replaced with it if it is its own and nothing else.

    Where it is not known who they are, any adapters of ours are.
    """
    names = storage.listdir(folder) if storage.isdir(folder) else ["a file"]
    inside = [os.path.join(folder, name.rstrip("/")) for name in names]
    other = sorted(os.path.basename(path) for path in inside if not storage.isdir(path))
    if known is not None:
        other = sorted({os.path.basename(path) for path in inside} - known)
    if storage.is_link(folder) or other:
        raise InputError(
            f"{folder!r} holds {other[:5] or 'a link'}, which is no {what}, and will not be "
            "replaced. Choose another folder, or move it away."
        )
    for path in inside:
        require_place(path)
        _require_ours(path)


def require_same_task(folder: str, config: Mapping[str, Any]) -> None:
    """An adapter that is in a folder must be of the same name and labels. Raises `InputError`."""
    theirs = _config(folder)
    if theirs is None:
        return
    same = ("labels", "head")
    name, ours = contents.name_of(theirs), contents.name_of(config)
    if name != ours or any(theirs[key] != config[key] for key in same):
        raise InputError(
            f"{folder!r} holds the adapter {preview(name)} with {_said(theirs)}, and "
            f"{preview(ours)} "
            f"with {_said(config)} is to go there. Choose another folder, or say overwrite=True.",
            "overwrite=True",
        )


def _said(config: Mapping[str, Any]) -> str:
    labels = config["labels"]
    return f"the labels {preview(labels)}" if labels else "a score"


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
    length = min(struct.unpack("<Q", beginning)[0], MAX_HEADER_BYTES)
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
