"""The adapter directory: `adapter_config.json`, `adapter.safetensors` and `README.md`."""

from __future__ import annotations

import dataclasses
import io
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.errors import InputError, Mismatch, Occupied
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents, schema
from adapter_bert_tf.store import weights as weight_bytes
from adapter_bert_tf.store.adapter_dir import AdapterDir
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.derivation import adapter_source, derive
from adapter_bert_tf.store.file_names import CARD, CONFIG, TASKS, WEIGHTS
from adapter_bert_tf.store.files import (
    adapter_at,
    adapter_files,
    config_bytes,
    find_adapter,
    read_adapter,
    read_config,
    write_files,
)
from adapter_bert_tf.store.members import Member, member_values, read_members
from adapter_bert_tf.store.multitask import config_of, is_several, names_of
from adapter_bert_tf.store.task_directories import separate_task, task_adapters


@dataclasses.dataclass(frozen=True)
class SavedAdapter:
    """The content of an adapter directory.

    Args:
      config: dict: `method`, `tuning` (a `Tuning` as dict), `adapter` (a `ModuleConfig` as dict,
        or None), `task`, `head`, `labels` in the order of their ids, `regression`, `metric`, `base`
        (a fingerprint), `versions`, `command`, and from a run `run`, its fingerprint;
        `save_adapter` adds two digests.
      weights: dict from common name to float array, for all trained variables and the weights of
        the members of a fusion.
      members: members of a fusion.
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
          fingerprint: fingerprint of the model's base.
          head: whether to assign the head too.

        Raises:
          InputError: when the base differs, or a variable is missing or has another shape. Nothing
            is assigned then.
        """
        check_base(self.config, fingerprint)
        skipped = () if head else ("head/",)
        weights = {n: v for n, v in self.weights.items() if not n.startswith(skipped)}
        mismatched = [
            name
            for name, value in weights.items()
            if name not in variables or tuple(variables[name].shape) != value.shape
        ]
        missing = [
            n for n in variables if not n.startswith(("bert/", *skipped)) and n not in weights
        ]
        if mismatched or missing:
            raise Mismatch(
                f"The saved adapter does not fit the model. Not in the model or with "
                f"another shape: {mismatched[:5]}. Missing in the file: {missing[:5]}"
            )
        for name, value in weights.items():
            variables[name].assign(value)


def with_task_config(saved: SavedAdapter, name: str) -> SavedAdapter:
    """A multitask adapter with the config of one task. Raises `InputError`."""
    return dataclasses.replace(saved, config=config_of(saved.config, name))


def extract_task(saved: SavedAdapter, task: str | None) -> SavedAdapter:
    """Extracts an ordinary adapter of one task from a multitask adapter. Raises `InputError`.

    None stands for a new task: a hypernetwork generates its adapter from the mean of the tasks'
    embeddings. Its head must not be used.
    """
    if contents.tuning_of(saved.config).changes_base:
        raise Mismatch(
            f"{saved.config['method']} trained one encoder for all its tasks, so it has no adapter "
            "of a single task. Use the whole."
        )
    config, values = separate_task(saved.config, saved.weights, task)
    config |= {} if task else {"task": saved.config["task"]}
    config = derive(config, "generate", [adapter_source(saved.config)])
    return SavedAdapter(config, {name: np.asarray(value) for name, value in values.items()})


def save_adapter(
    folder: str | os.PathLike[str],
    config: Mapping[str, Any],
    variables: Mapping[str, Tensor | np.ndarray],
    dtype: str = "float32",
    members: Sequence[Member] = (),
) -> None:
    """Writes an adapter directory atomically.

    Args:
      folder: path; an existing adapter is replaced.
      config: dict as in `SavedAdapter`.
      variables: dict from common name to variable or array, for all trained variables.
      dtype: dtype of the stored weights: `float32`, `float16` or `bfloat16`.
      members: members of a fusion, stored as copies, or the adapter below, by digest.

    Raises:
      InputError: when `folder` has other files than an adapter's, a weight is not finite, or the
        variables do not match the config.
    """
    path = storage.path_of(folder)
    AdapterDir(path).require_replaceable()
    if not isinstance(config, Mapping) or not {"adapter", "tuning"} <= config.keys():
        raise InputError(
            "The config of an adapter must be a dict as from AdapterModel.config(NAME). Received: "
            f"{preview(config)}"
        )
    config, variables = _without_training_parts(config, variables)
    if members:
        config = {**config, "members": [member.config["sha256"] for member in members]}
    member_names = _member_weights(config, members)
    borrowed = {*member_names, *contents.borrowed_names(config)}
    arrays = {n: np.asarray(variable) for n, variable in variables.items() if n not in borrowed}
    content = weight_bytes.pack(arrays, dtype)
    config = schema.seal(config, weight_bytes.digest(content))
    schema.parse(json.dumps(config), f"The config of {path!r}")
    weight_bytes.check_header(
        io.BytesIO(content).read,
        len(content),
        contents.expected_shapes(config),
        f"The weights for {path!r}",
    )
    files = adapter_files(config, content)
    for member in (member for member in members if member.is_copied):
        files |= member.files()
    if is_several(config):
        for task in task_adapters(config, variables, dtype):
            files |= task.files(f"{TASKS}/{task.name}")
    write_files(path, files, lambda _: AdapterDir(path).require_replaceable())


def _without_training_parts(
    config: Mapping[str, Any], variables: Mapping[str, Tensor | np.ndarray]
) -> tuple[Mapping[str, Any], Mapping[str, Tensor | np.ndarray]]:
    """The config and the values without what a method needs in training only."""
    adapter = contents.adapter_of(config)
    if adapter is None or adapter.stored_config() == adapter:
        return config, variables
    stored = {**config, "adapter": adapter.stored_config().to_dict()}
    return stored, adapter.stored_values(variables)


def _member_weights(config: Mapping[str, Any], members: Sequence[Member]) -> dict[str, np.ndarray]:
    """The weights of a fusion that come from its members."""
    adapter = contents.adapter_of(config)
    return member_values(adapter, members) if adapter and members else {}


def copy_adapter(source: str, folder: str, run: str) -> None:
    """Copies an adapter directory atomically, with a run's fingerprint. Raises `InputError`."""
    AdapterDir(folder).require_replaceable()
    config = read_config(os.path.join(source, CONFIG))
    files = [file for member in read_members(source, config) for file in member.files()]
    if is_several(config) and storage.isdir(os.path.join(source, TASKS)):
        names = (CONFIG, WEIGHTS, CARD)
        files += [f"{TASKS}/{task}/{name}" for task in names_of(config) for name in names]
    config = schema.seal(config | {"run": run}, config["weights_sha256"])
    with AdapterDir(folder).replace() as temporary:
        storage.write_bytes(os.path.join(temporary, CONFIG), config_bytes(config))
        for name in (WEIGHTS, CARD, *files):
            storage.copy(os.path.join(source, name), os.path.join(temporary, name))


def check_task_directories(folder: str, saved: SavedAdapter) -> None:
    """Raises `InputError` unless the single-task adapters are those of a multitask adapter."""
    tasks_folder = os.path.join(folder, TASKS)
    if not is_several(saved.config):
        if storage.exists(tasks_folder):
            raise Occupied(
                f"{tasks_folder!r} does not belong to this adapter of one task, "
                f"{preview(saved.config['task'])}. Move it away."
            )
        return
    adapter = contents.adapter_of(saved.config)
    # Weights generated on another machine differ in rounding, and files may have a smaller dtype.
    is_generated = adapter is not None and adapter.generates
    rtol, atol = (0.02, 1e-4) if is_generated else (0.0, 0.0)
    for task in task_adapters(saved.config, saved.weights):
        path = os.path.join(tasks_folder, task.name)
        stored = load_adapter(path).weights
        if stored.keys() != task.weights.keys() or not all(
            stored[n].shape == task.weights[n].shape
            and np.allclose(stored[n], task.weights[n], rtol, atol)
            for n in stored
        ):
            raise Mismatch(f"{path!r} does not match the multitask adapter it is stored in.")


class TrainedAdapter(AdapterDir):
    """The adapter directory of a run."""

    def is_whole(self) -> bool:
        """Whether it can be read, with the adapters in it."""
        try:
            check_task_directories(self.path, load_adapter(self.path))
        except InputError:
            return False
        return True


def parse_named_folder(text: str) -> tuple[str, str]:
    """Parses `NAME=FOLDER` to (name, path); the name is "" if `=` is part of the path."""
    name, equals, path = text.partition("=")
    is_named = equals and ("/" not in name or find_adapter(path)) and not find_adapter(text)
    return (name, path) if is_named else ("", text)


def parse_named_folders(text: str) -> list[tuple[str, str]]:
    """Parses `FOLDER,NAME=FOLDER,...` to (name, path) pairs; local paths may have commas."""
    parts, pairs = text.split(","), []
    while parts:
        counts = range(1, len(parts) + 1)
        count = next((n for n in counts if _is_local_adapter(",".join(parts[:n]))), 1)
        pairs.append(parse_named_folder(",".join(parts[:count]).strip()))
        parts = parts[count:]
    return [(name.strip(), path.strip()) for name, path in pairs if name or path]


def _is_local_adapter(text: str) -> bool:
    _, path = parse_named_folder(text.strip())
    return not storage.is_remote(path) and find_adapter(path.strip()) is not None


def load_adapter(folder: str | os.PathLike[str]) -> SavedAdapter:
    """Reads an adapter directory, or that of a run, as untrusted data.

    Raises `InputError` unless it is complete.

    No code in it is run and no file outside it is read. Numbers, names and shapes of the weights
    are checked against the config before the weights are read.
    """
    path = adapter_at(storage.path_of(folder))
    config, weights, _ = read_adapter(path)
    members = read_members(path, config)
    return SavedAdapter(config, weights | _member_weights(config, members), members)
