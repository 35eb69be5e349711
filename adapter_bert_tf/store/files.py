"""Reads the files of an adapter directory as untrusted data; writes them atomically."""

import json
import os
import stat
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Damaged, NotFound
from adapter_bert_tf.output.atomic import replace_folder, require_creatable
from adapter_bert_tf.permissions import denied_as_input_error, require_open
from adapter_bert_tf.store import contents, schema
from adapter_bert_tf.store import weights as weight_bytes
from adapter_bert_tf.store.card import card_page
from adapter_bert_tf.store.file_names import CARD, CONFIG, WEIGHTS


def read_adapter_config(folder: str) -> dict[str, Any]:
    """Reads the config of an adapter, or of a run's. Raises `InputError`, also if there is none."""
    require_open(folder)
    folder = adapter_at(folder)
    if not storage.exists(os.path.join(folder, CONFIG)):
        raise missing_adapter(folder, "adapter_dir")
    return read_config(os.path.join(folder, CONFIG))


def adapter_exists(folder: str) -> bool:
    """Whether `folder` is an adapter directory."""
    return storage.exists(os.path.join(folder, CONFIG))


def find_adapter(folder: str) -> str | None:
    """Returns `folder` or its subfolder `adapter`, if it is an adapter directory; else None."""
    candidates = [folder, os.path.join(folder, "adapter")] if folder else []
    return next((place for place in candidates if adapter_exists(place)), None)


def adapter_at(folder: str) -> str:
    """Returns what `find_adapter` finds; `folder` if it finds nothing."""
    return find_adapter(folder) or folder


def missing_adapter(folder: str, *setting: str) -> NotFound:
    """The error for a folder without an adapter, with the name of the setting to change if any."""
    near = _adapter_near(folder)
    advice = f"Is it {near!r}" if near else "Train an adapter, or give the directory of another"
    named = "".join(f" ({name})" for name in setting)
    return NotFound(
        f"No adapter in {folder!r}: {CONFIG} is missing. {advice}{named}{'?' if near else '.'}",
        *setting,
    )


def _adapter_near(folder: str) -> str | None:
    """The adapter of the run in a folder, or of the run that a folder or file belongs to."""
    path = os.path.normpath(folder) if not storage.is_remote(folder) else folder.rstrip("/")
    runs = [path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))]
    places = [os.path.join(run, "adapter") for run in runs if run]
    return next((p for p in places if storage.exists(os.path.join(p, CONFIG))), None)


def read_adapter(folder: str) -> tuple[dict[str, Any], dict[str, np.ndarray], bytes]:
    """(config, weights by common name, bytes of the weights file). Raises `InputError`."""
    try:
        config = read_adapter_config(folder)
        weights, content = _read_weights(os.path.join(folder, WEIGHTS), config)
    except OSError as error:
        raise Damaged(f"The adapter directory {folder!r} is damaged: {error}") from error
    return config, weights, content


@denied_as_input_error()
def read_config(path: str) -> dict[str, Any]:
    """Reads a config. Raises `InputError`."""
    if _file_size(path) > schema.LARGEST_CONFIG:
        raise Damaged(f"{path} is damaged: it has more than {schema.LARGEST_CONFIG:,} bytes.")
    try:
        text = storage.read_text(path)
    except UnicodeDecodeError as error:
        raise Damaged(f"{path} is damaged: it is not UTF-8 text ({error}).") from error
    return schema.parse(text, path)


@denied_as_input_error()
@storage.retry_remote
def _read_weights(path: str, config: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], bytes]:
    shapes, size = contents.expected_shapes(config), _file_size(path)
    with storage.open_to_read(path) as file:
        weight_bytes.check_header(file.read, size, shapes, path)
        file.seek(0)
        content = file.read()
    if weight_bytes.digest(content) != config["weights_sha256"]:
        raise Damaged(f"{path} is damaged: its digest differs from the one in {CONFIG}.")
    return weight_bytes.unpack(content, path), content


def _file_size(path: str) -> int:
    """The size of a regular file; raises `InputError` for links, pipes and folders."""
    is_local = not storage.is_remote(path) and os.path.lexists(path)
    if is_local and not stat.S_ISREG(os.lstat(path).st_mode):
        raise Damaged(
            f"{path} is damaged: it is not a regular file. Copy the file itself into the adapter "
            "directory."
        )
    return storage.stat(path).length


def adapter_files(config: Mapping[str, Any], weights: bytes) -> dict[str, bytes]:
    """Dict from the names of the files of a sealed adapter to their bytes."""
    return {CONFIG: config_bytes(config), WEIGHTS: weights, CARD: card_page(config).encode()}


def config_bytes(config: Mapping[str, Any]) -> bytes:
    """Serializes a config."""
    return json.dumps(config, indent=2).encode()


def write_files(
    folder: str, files: Mapping[str, bytes], check: Callable[[str], None] = require_creatable
) -> None:
    """Replaces a folder atomically; without the first of the files it counts as empty."""
    with replace_folder(folder, next(iter(files)), check) as temporary:
        for name, data in files.items():
            storage.write_bytes(os.path.join(temporary, name), data)
