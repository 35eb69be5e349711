"""The adapter directory: `adapter_config.json`, `adapter.safetensors` and `README.md`."""

import dataclasses
import io
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents, schema
from adapter_bert_tf.store import weights as weight_bytes
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.card import page
from adapter_bert_tf.store.files import config_bytes, read, read_config, write_files
from adapter_bert_tf.store.folders import TASKS, replacing
from adapter_bert_tf.store.fusion_files import read_members
from adapter_bert_tf.store.members import Member, stacked
from adapter_bert_tf.store.multitask import config_of, is_several, names_of
from adapter_bert_tf.store.place import CARD, CONFIG, WEIGHTS, require_adapter_place
from adapter_bert_tf.store.task_directories import apart, each_task, is_made


@dataclasses.dataclass(frozen=True)
class SavedAdapter:
    """What an adapter directory holds.

    Args:
      config: dict: `method`, `tuning` (a `Tuning` as dict), `adapter` (a `PartsConfig` as dict,
        or None), `task`, `head`, `labels` in the order of their ids, `regression`, `metric`, `base`
        (a fingerprint), `versions`, `command`, and, of a run, `run`, a digest of what decides it;
        `save_adapter` adds two digests.
      weights: dict from common name to float array: everything that was trained, and of a fusion
        what its members bring.
      members: of a fusion.
    """

    config: dict[str, Any]
    weights: dict[str, np.ndarray]
    members: tuple[Member, ...] = ()

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


def of_task(saved: SavedAdapter, name: str) -> SavedAdapter:
    """What was trained, with what it says of one of its tasks alone; its weights are the same.

    Raises:
      InputError: when there is no task of that name.
    """
    return dataclasses.replace(saved, config=config_of(saved.config, name))


def single(saved: SavedAdapter, task: str | None) -> SavedAdapter:
    """An ordinary adapter of one task, of what was trained on several.

    Args:
      saved: what was trained.
      task: whose; None: of none of them, with what all share. For that a hypernetwork makes an
        adapter of the mean of their embeddings, and its head is to be left alone.

    Raises:
      InputError: when there is no task of that name, or none can be apart.
    """
    if contents.tuning_of(saved.config).changes_base:
        raise InputError(
            f"{saved.config['method']} trained one encoder for all its tasks: there is no adapter "
            "of one. Apply it as a whole."
        )
    config, values = apart(saved.config, saved.weights, task)
    config |= {} if task else {"task": saved.config["task"]}
    return SavedAdapter(config, {name: np.asarray(value) for name, value in values.items()})


def save_adapter(
    folder: str | os.PathLike[str],
    config: Mapping[str, Any],
    variables: Mapping[str, Tensor | np.ndarray],
    dtype: str = "float32",
    members: Sequence[Member] = (),
) -> None:
    """Writes an adapter directory, under a temporary name first.

    Args:
      folder: path; an adapter that is there is replaced.
      config: dict as in `SavedAdapter`.
      variables: dict from common name to variable or array: everything that was trained.
      dtype: the weights are stored as `float32`, `float16` or `bfloat16`.
      members: of a fusion; copies go along.

    Raises:
      InputError: when `folder` holds something else than an adapter, a weight is not finite, or
        the variables are not those that the config describes.
    """
    path = storage.path_of(folder)
    require_adapter_place(path)
    _require_described(config)
    if members:
        config = {**config, "members": [member.config["sha256"] for member in members]}
    borrowed = _borrowed(config, members)
    arrays = {n: np.asarray(variable) for n, variable in variables.items() if n not in borrowed}
    content = weight_bytes.pack(arrays, dtype)
    config = schema.seal(config, weight_bytes.digest(content))
    schema.parse(json.dumps(config), f"The config of {path!r}")
    weight_bytes.check_header(
        io.BytesIO(content).read,
        len(content),
        contents.expected_shapes(config),
        f"What is to go to {path!r}",
    )
    files = {
        CONFIG: config_bytes(config),
        WEIGHTS: content,
        CARD: page(config).encode(),
    }
    for member in members:
        files |= member.files()
    if is_several(config):
        for task in each_task(config, variables, dtype):
            files |= task.files(f"{TASKS}/{task.name}")
    write_files(path, files)


def _require_described(config: Mapping[str, Any]) -> None:
    """What sealing asks a config for; all else is checked with it. Raises `InputError`."""
    if not isinstance(config, Mapping) or not {"adapter", "tuning"} <= config.keys():
        raise InputError(
            "The config of an adapter is a dict such as AdapterModel.config(NAME) gives. Received: "
            f"{preview(config)}"
        )


def _borrowed(config: Mapping[str, Any], members: Sequence[Member]) -> dict[str, np.ndarray]:
    """What a fusion has of its members."""
    adapter = contents.adapter_of(config)
    return stacked(adapter, members) if isinstance(adapter, FusionConfig) and members else {}


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
    config = read_config(os.path.join(source, CONFIG))
    inside = [file for member in read_members(source, config) for file in member.files()]
    if is_several(config) and storage.isdir(os.path.join(source, TASKS)):
        names = (CONFIG, WEIGHTS, CARD)
        inside += [f"{TASKS}/{task}/{name}" for task in names_of(config) for name in names]
    config = schema.seal(config | {"run": run}, config["weights_sha256"])
    with replacing(folder, last=CONFIG) as temporary:
        storage.write_bytes(os.path.join(temporary, CONFIG), config_bytes(config))
        for name in (WEIGHTS, CARD, *inside):
            storage.copy(os.path.join(source, name), os.path.join(temporary, name))


def check_tasks(folder: str, saved: SavedAdapter) -> None:
    """Beside what was trained on several tasks there must be the adapter of each, as it makes them.

    Raises:
      InputError: for one that is gone, damaged or another, or those of what is of one task.
    """
    beside = os.path.join(folder, TASKS)
    if not is_several(saved.config) and storage.exists(beside):
        raise InputError(
            f"It is the adapter of one task, {preview(saved.config['task'])}, and {beside!r} is "
            "not of it. Move that elsewhere."
        )
    of_each = each_task(saved.config, saved.weights) if is_several(saved.config) else []
    # What is made once more on another machine is rounded otherwise, and is in a file of any type.
    same = _about_the_same if of_each and is_made(saved.config) else np.array_equal
    for task in of_each:
        path = os.path.join(beside, task.name)
        theirs = load_adapter(path).weights
        if theirs.keys() != task.weights.keys() or not all(
            same(theirs[name], task.weights[name]) for name in theirs
        ):
            raise InputError(f"{path!r} is not the adapter that was trained with the others.")


def _about_the_same(theirs: np.ndarray, ours: np.ndarray) -> bool:
    return np.allclose(theirs, ours, rtol=0.02, atol=1e-4)


def adapter_exists(folder: str) -> bool:
    """Whether there is an adapter directory at `folder`."""
    return storage.exists(os.path.join(folder, CONFIG))


def adapter_in(folder: str) -> str | None:
    """The adapter directory at `folder`, or in it as a run leaves it; None if there is none."""
    places = [folder, os.path.join(folder, "adapter")] if folder else []
    return next((place for place in places if adapter_exists(place)), None)


def named_folder(text: str) -> tuple[str, str]:
    """(name, path) of `NAME=FOLDER`; the name is "" where `=` only stands in a path."""
    name, equals, path = text.partition("=")
    is_named = equals and ("/" not in name or adapter_in(path)) and not adapter_in(text)
    return (name, path) if is_named else ("", text)


def named_folders(text: str) -> list[tuple[str, str]]:
    """Pairs (name, path) of `FOLDER,NAME=FOLDER,...`.

    A comma is in the name of a local folder, as of a run of a sweep, where that is an adapter's.
    """
    parts, found = text.split(","), []
    while parts:
        longer = range(1, len(parts) + 1)
        count = next((n for n in longer if _is_local_adapter(",".join(parts[:n]))), 1)
        found.append(named_folder(",".join(parts[:count]).strip()))
        parts = parts[count:]
    return [(name.strip(), path.strip()) for name, path in found if name or path]


def _is_local_adapter(text: str) -> bool:
    _, path = named_folder(text.strip())
    return not storage.is_remote(path) and adapter_in(path.strip()) is not None


def load_adapter(folder: str | os.PathLike[str]) -> SavedAdapter:
    """Reads an adapter directory; nothing in it is run, and nothing outside it is read.

    Raises:
      InputError: when it is not there, not complete, or not what `save_adapter` writes. It is
        refused before its weights are read if their number, names or shapes are not those that
        its config implies.
    """
    path = storage.path_of(folder)
    config, weights, _ = read(path)
    members = read_members(path, config)
    return SavedAdapter(config, weights | _borrowed(config, members), members)
