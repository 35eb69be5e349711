"""The adapter directory: `adapter_config.json`, `adapter.safetensors` and `README.md`."""

import dataclasses
import json
import os

import numpy as np
import safetensors
import safetensors.numpy
import tensorflow as tf

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.store.card import card

CONFIG, WEIGHTS, CARD = "adapter_config.json", "adapter.safetensors", "README.md"
REQUIRED = {"method": str, "tuning": dict, "task": str, "labels": list, "base": dict,
            "variables": list}


@dataclasses.dataclass(frozen=True)
class SavedAdapter:
    """What an adapter directory holds.

    Args:
      config: dict: `method`, `tuning` (a `Tuning` as dict), `adapter` (an `AdapterConfig` as dict,
        or None), `task`, `labels` in the order of their ids, `metric`, `base` (a fingerprint),
        `versions`, `command`; `variables`, the names in `weights`, is added by `save_adapter`.
      weights: dict from common name to float array: everything that was trained.
    """

    config: dict
    weights: dict

    def assign_to(self, variables, fingerprint):
        """Assigns the weights to a model's named variables.

        Raises:
          InputError: when the base is another one, or a variable is missing or of another shape.
            Nothing is assigned then.
        """
        _check_base(self.config["base"], fingerprint)
        wrong = [name for name, value in self.weights.items()
                 if name not in variables or tuple(variables[name].shape) != value.shape]
        lost = [name for name in variables
                if name.startswith(("adapters/", "head/")) and name not in self.weights]
        if wrong or lost:
            raise InputError(f"The saved adapter does not fit the model. Not in the model or of "
                             f"another shape: {wrong[:5]}. Missing in the file: {lost[:5]}")
        for name, value in self.weights.items():
            variables[name].assign(value)


def save_adapter(folder, config, variables):
    """Writes an adapter directory, under a temporary name first.

    Args:
      folder: path; an adapter that is there is replaced.
      config: dict as in `SavedAdapter`.
      variables: dict from common name to variable: everything that was trained.

    Raises:
      InputError: when `folder` holds something else than an adapter.
    """
    require_free(folder)
    config = config | {"variables": sorted(variables)}
    temporary = f"{folder.rstrip('/')}.tmp"
    _make_empty(temporary)
    arrays = {name: np.ascontiguousarray(variable.numpy()) for name, variable in variables.items()}
    files = {
        CONFIG: json.dumps(config, indent=2).encode(),
        WEIGHTS: safetensors.numpy.save(arrays, metadata={"format": "adapter_bert_tf"}),
        CARD: card(config, arrays).encode(),
    }
    for name, content in files.items():
        with tf.io.gfile.GFile(os.path.join(temporary, name), "wb") as file:
            file.write(content)
    _put_in_place(temporary, folder)


def copy_adapter(source, folder):
    """Copies an adapter directory, under a temporary name first; replaces an adapter there."""
    require_free(folder)
    temporary = f"{folder.rstrip('/')}.tmp"
    _make_empty(temporary)
    for name in (CONFIG, WEIGHTS, CARD):
        tf.io.gfile.copy(os.path.join(source, name), os.path.join(temporary, name))
    _put_in_place(temporary, folder)


def _make_empty(folder):
    if tf.io.gfile.exists(folder):
        tf.io.gfile.rmtree(folder)
    tf.io.gfile.makedirs(folder)


def _put_in_place(temporary, folder):
    if tf.io.gfile.exists(folder):
        tf.io.gfile.rmtree(folder)
    tf.io.gfile.rename(temporary, folder)


def adapter_exists(folder):
    """Whether there is an adapter directory at `folder`."""
    return tf.io.gfile.exists(os.path.join(folder, CONFIG))


def require_free(folder):
    """An adapter may be written where nothing is, or an adapter. Raises `InputError`."""
    if not tf.io.gfile.exists(folder):
        return
    other = [] if not tf.io.gfile.isdir(folder) else [
        name for name in tf.io.gfile.listdir(folder) if name not in (CONFIG, WEIGHTS, CARD)]
    if other or not tf.io.gfile.isdir(folder):
        raise InputError(f"{folder!r} is no adapter directory and will not be replaced: it "
                         f"holds {other[:5] or 'a file'}. Choose another --adapter_dir.")


def load_adapter(folder):
    """Reads an adapter directory.

    Raises:
      InputError: when it is not there, not complete, or not what `save_adapter` writes.
    """
    if not adapter_exists(folder):
        raise InputError(f"No adapter in {folder!r}: {CONFIG} is not there. Train one with "
                         "--do_train, or name its directory with --adapter_dir.")
    try:
        with tf.io.gfile.GFile(os.path.join(folder, CONFIG)) as file:
            config = json.load(file)
        with tf.io.gfile.GFile(os.path.join(folder, WEIGHTS), "rb") as file:
            weights = safetensors.numpy.load(file.read())
    except (json.JSONDecodeError, safetensors.SafetensorError, tf.errors.OpError) as error:
        raise InputError(f"The adapter directory {folder!r} is damaged: {error}") from error
    is_dict = isinstance(config, dict)
    wrong = [k for k, kind in REQUIRED.items() if not (is_dict and isinstance(config.get(k), kind))]
    if wrong:
        raise InputError(f"{folder}/{CONFIG} misses {wrong}, or they are of another type.")
    if sorted(weights) != config["variables"]:
        different = sorted(set(weights) ^ set(map(str, config["variables"])))
        raise InputError(f"The adapter directory {folder!r} is damaged: {WEIGHTS} and {CONFIG} "
                         f"disagree about {different[:5]}.")
    return SavedAdapter(config, weights)


def _check_base(expected, received):
    different = [f"{key}: adapter {expected.get(key)!r}, base {received.get(key)!r}"
                 for key in received if expected.get(key) != received[key]]
    if different:
        raise InputError("The adapter was trained on another base. " + "; ".join(different)
                         + ". Use the base it was trained on (--base_model).")
