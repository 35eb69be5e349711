"""The adapter directory: `adapter_config.json`, `adapter.safetensors` and `README.md`."""

import dataclasses
import io
import json
import os
import stat
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.received import shown
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store import weights as weight_bytes
from adapter_bert_tf.store.card import card
from adapter_bert_tf.store.folders import replacing
from adapter_bert_tf.store.place import CARD, CONFIG, WEIGHTS, require_adapter_place


@dataclasses.dataclass(frozen=True)
class SavedAdapter:
    """What an adapter directory holds.

    Args:
      config: dict: `method`, `tuning` (a `Tuning` as dict), `adapter` (a `PartsConfig` as dict,
        or None), `task`, `head`, `labels` in the order of their ids, `regression`, `metric`, `base`
        (a fingerprint), `versions`, `command`, and, of a run, `run`, a digest of what decides it;
        `save_adapter` adds two digests.
      weights: dict from common name to float array: everything that was trained.
    """

    config: dict[str, Any]
    weights: dict[str, np.ndarray]

    def assign_to(
        self,
        variables: Mapping[str, tf.Variable],
        fingerprint: Mapping[str, Any],
        head: bool = True,
    ) -> None:
        """Assigns the weights to a model's named variables.

        Args:
          variables: dict from common name to variable, all of the model.
          fingerprint: of the model's base.
          head: whether the head is assigned too; else the model keeps its own.

        Raises:
          InputError: when the base is another one, or a variable is missing or of another shape.
            Nothing is assigned then.
        """
        check_base(self.config, fingerprint)
        variables = {n: v for n, v in variables.items() if head or not n.startswith("head/")}
        weights = {n: v for n, v in self.weights.items() if head or not n.startswith("head/")}
        wrong = [
            name
            for name, value in weights.items()
            if name not in variables or tuple(variables[name].shape) != value.shape
        ]
        lost = [name for name in variables if not name.startswith("bert/") and name not in weights]
        if wrong or lost:
            raise InputError(
                f"The saved adapter does not fit the model. Not in the model or of "
                f"another shape: {wrong[:5]}. Missing in the file: {lost[:5]}"
            )
        for name, value in weights.items():
            variables[name].assign(value)


def save_adapter(
    folder: str,
    config: Mapping[str, Any],
    variables: Mapping[str, Tensor | np.ndarray],
    dtype: str = "float32",
) -> None:
    """Writes an adapter directory, under a temporary name first.

    Args:
      folder: path; an adapter that is there is replaced.
      config: dict as in `SavedAdapter`.
      variables: dict from common name to variable or array: everything that was trained.
      dtype: the weights are stored as `float32`, `float16` or `bfloat16`.

    Raises:
      InputError: when `folder` holds something else than an adapter, a weight is not finite, or
        the variables are not those that the config describes.
    """
    require_adapter_place(folder)
    arrays = {name: np.asarray(variable) for name, variable in variables.items()}
    content = weight_bytes.pack(arrays, dtype)
    config = schema.seal(config, weight_bytes.digest(content))
    schema.parse(json.dumps(config), f"The config of {folder!r}")
    weight_bytes.check_header(
        io.BytesIO(content).read,
        len(content),
        contents.expected_shapes(config),
        f"What is to go to {folder!r}",
    )
    files = {
        CONFIG: _config_bytes(config),
        WEIGHTS: content,
        CARD: card(config, arrays).encode(),
    }
    write_files(folder, files)


def write_files(folder: str, files: Mapping[str, bytes]) -> None:
    """Writes a folder under a temporary name, then renames it; what is there is replaced.

    Args:
      folder: path.
      files: dict from name to bytes; without the first file the folder counts as empty.
    """
    with replacing(folder, last=next(iter(files))) as temporary:
        for name, data in files.items():
            storage.write_bytes(os.path.join(temporary, name), data)


def copy_adapter(source: str, folder: str, run: str) -> None:
    """Copies an adapter directory, under a temporary name first; replaces an adapter there.

    Args:
      source: of the adapter.
      folder: path; an adapter that is there is replaced.
      run: what the copy says of the run that wrote it.

    Raises:
      InputError: when `source` is damaged, or `folder` holds something else than an adapter.
    """
    require_adapter_place(folder)
    config = _read_config(os.path.join(source, CONFIG))
    config = schema.seal(config | {"run": run}, config["weights_sha256"])
    with replacing(folder, last=CONFIG) as temporary:
        storage.write_bytes(os.path.join(temporary, CONFIG), _config_bytes(config))
        for name in (WEIGHTS, CARD):
            storage.copy(os.path.join(source, name), os.path.join(temporary, name))


def _config_bytes(config: Mapping[str, Any]) -> bytes:
    return json.dumps(config, indent=2).encode()


def adapter_exists(folder: str) -> bool:
    """Whether there is an adapter directory at `folder`."""
    return storage.exists(os.path.join(folder, CONFIG))


def adapter_is_whole(folder: str) -> bool:
    """Whether there is an adapter directory with its weights at `folder`."""
    return adapter_exists(folder) and storage.exists(os.path.join(folder, WEIGHTS))


def load_adapter(folder: str) -> SavedAdapter:
    """Reads an adapter directory; nothing in it is run, and nothing outside it is read.

    Raises:
      InputError: when it is not there, not complete, or not what `save_adapter` writes. It is
        refused before its weights are read if their number, names or shapes are not those that
        its config implies.
    """
    if not adapter_exists(folder):
        raise InputError(
            f"No adapter in {folder!r}: {CONFIG} is not there. Train one, or name the directory of "
            "another (adapter_dir).",
            "adapter_dir",
        )
    try:
        config = _read_config(os.path.join(folder, CONFIG))
        weights = _read_weights(os.path.join(folder, WEIGHTS), config)
    except (tf.errors.OpError, UnicodeDecodeError) as error:
        raise InputError(f"The adapter directory {folder!r} is damaged: {error}") from error
    return SavedAdapter(config, weights)


def _size(path: str) -> int:
    """Bytes of a file. Raises `InputError` for links and for what only looks like a file."""
    if "://" not in path and os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise InputError(
            f"{path} is damaged: it is no regular file, and is not read. Copy the "
            "files themselves into the adapter directory."
        )
    return storage.stat(path).length


def _read_config(path: str) -> dict[str, Any]:
    if _size(path) > schema.LARGEST_CONFIG:
        raise InputError(f"{path} is damaged: it has more than {schema.LARGEST_CONFIG:,} bytes.")
    return schema.parse(storage.read_text(path), path)


@storage.patient
def _read_weights(path: str, config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    shapes = contents.expected_shapes(config)
    size = _size(path)
    with tf.io.gfile.GFile(path, "rb") as file:
        weight_bytes.check_header(file.read, size, shapes, path)
        file.seek(0)
        content = file.read()
    if weight_bytes.digest(content) != config["weights_sha256"]:
        raise InputError(f"{path} is damaged: its digest is not the one in {CONFIG}.")
    return weight_bytes.unpack(content, path)


def check_base(config: Mapping[str, Any], received: Mapping[str, Any]) -> None:
    """An adapter's base must be the one at hand.

    Args:
      config: of the adapter.
      received: fingerprint of a base.

    Raises:
      InputError: when it is another one, or its weights were random and are gone. The LayerNorms
        count where the adapter brings none of its own; of a directory of an earlier version, which
        does not say which they were, a warning says so.
    """
    expected = config["base"]
    if expected["weights_sha256"] is None and config["method"] != "full":
        raise InputError(
            "The adapter was trained on a base of random weights, which is not there "
            "any more. Train it again on a base with weights (checkpoint=PATH).",
            "checkpoint=PATH",
        )
    different = [
        f"{key}: adapter {shown(expected.get(key))}, base {shown(received.get(key))}"
        for key in received
        if expected.get(key) != received[key] and key != checks.NORMS
    ]
    if not different and not contents.brings_norms(config):
        different = _other_norms(expected.get(checks.NORMS), received.get(checks.NORMS))
    if different:
        raise InputError(
            "The adapter was trained on another base. "
            + "; ".join(different)
            + ". Use the base it was trained on (base_model).",
            "base_model",
        )


def _other_norms(expected: str | None, received: str | None) -> list[str]:
    """What differs of the LayerNorms, if anything."""
    if received is None or expected == received:
        return []
    if expected is None:
        logging.warning(
            "The adapter brings no LayerNorms of its own and does not say with which it was "
            "trained, as it was saved by an earlier version: they cannot be compared with the "
            "base's."
        )
        return []
    return [f"LayerNorms: adapter {expected!r}, base {received!r}"]
