"""File names and variable names of Hugging Face's library PEFT (0.21), and reading its files.

`save_pretrained` writes `adapter_config.json` and `adapter_model.safetensors`.
"""

import dataclasses
import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Damaged, Unsupported
from adapter_bert_tf.interop.foreign_files import Library
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import schema
from adapter_bert_tf.store.file_names import CONFIG

WEIGHTS = "adapter_model.safetensors"
LIBRARY = Library("PEFT", "Save the adapter again with PEFT: model.save_pretrained(folder).")
require, require_sound = LIBRARY.require, LIBRARY.require_sound
WRAPPED = "base_model.model."  # Begins the names of all weights.
POOLER_PATH = "bert.pooler.dense"
# The library's paths of the projections of a layer.
MODULES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
}
# Options of all methods that name modules, describe the file, or only matter in training.
COMMON_OPTIONS = {
    *("auto_mapping", "base_model_name_or_path", "exclude_modules", "fan_in_fan_out"),
    *("inference_mode", "modules_to_save", "peft_type", "peft_version", "revision"),
    *("target_modules", "task_type"),
}
# Patterns of modules without repeated groups, and the most repetitions and choices that they may
# have: others could take for ever.
PLAIN_PATTERN = re.compile(
    r"(?:\\?\.[*+]?|\\d[*+]?|\[[0-9-]+\][*+]?|[A-Za-z0-9_|^$]|\((?:\?:)?|\))*"
)
MOST_REPEATED, MOST_CHOICES = 3, 8
IN_LAYER = re.compile(rf"{re.escape(WRAPPED)}(?:bert\.)?encoder\.layer\.(\d{{1,4}})\.(.+)")


@dataclasses.dataclass(frozen=True)
class Place:
    """A weight of a method: its layer from 0, its projection, and its name in the library."""

    layer: int
    projection: str
    weight: str = ""

    @property
    def own_path(self) -> str:
        """The common prefix of our variables of this place."""
        return f"adapters/layer_{self.layer}/{self.projection}"

    @property
    def peft_path(self) -> str:
        """The library's name of the projection, which patterns are compared with."""
        return f"bert.encoder.layer.{self.layer}.{MODULES[self.projection]}"

    @property
    def peft_name(self) -> str:
        """The library's name of the weight in its files."""
        return f"{WRAPPED}{self.peft_path}.{self.weight}"


def is_peft(folder: str) -> bool:
    """Whether the library wrote a folder, by a field of its config that others do not have."""
    path = os.path.join(folder, CONFIG)
    if not storage.exists(path) or storage.stat(path).length > schema.LARGEST_CONFIG:
        return False
    try:
        return "peft_type" in storage.read_json_object(path, schema.LARGEST_CONFIG, distinct=True)
    except (Damaged, UnicodeDecodeError):
        return False


def read_options(folder: str) -> dict[str, Any]:
    """Reads the config. Raises `InputError`."""
    return LIBRARY.read_object(folder, CONFIG)


def read_weights(folder: str) -> dict[str, np.ndarray]:
    """Reads all weights, by the library's names. Raises `InputError`."""
    return LIBRARY.read_weights(folder, WEIGHTS)


def pop_places(
    options: Mapping[str, Any], tensors: dict[str, np.ndarray], weights: Collection[str], depth: int
) -> dict[Place, np.ndarray]:
    """Removes the weights of a method, all of two axes, and returns them by their places.

    Warns of modules in `depth` layers that the options name and the file does not have.
    """
    projections = {path: name for name, path in MODULES.items()}
    found: dict[Place, np.ndarray] = {}
    for name in list(tensors):
        if not (match := IN_LAYER.fullmatch(name)):
            continue
        for weight in weights:
            path = match[2].removesuffix(f".{weight}")
            if path != match[2] and path in projections:
                shape = tensors[name].shape
                require_sound(len(shape) == 2, f"{name} must have two axes", shape)
                found[Place(int(match[1]), projections[path], weight)] = tensors.pop(name)
    missing = _named_places(options, depth) - {Place(p.layer, p.projection) for p in found}
    if missing:
        paths = sorted(place.peft_path for place in missing)
        logging.warning(
            f"PEFT: target_modules names {len(missing)} modules whose weights the file does not "
            f"have: {preview(paths[:3])}. They stay as they are in the base. PEFT loses weights of "
            "adapters that are named as a part of a module's path (PEFT#3584)."
        )
    return found


def _named_places(options: Mapping[str, Any], depth: int) -> set[Place]:
    """The places that modules or a pattern name; nothing if other options choose among them."""
    names, others = options.get("target_modules"), ("layers_to_transform", "exclude_modules")
    if any(options.get(key) not in (None, []) for key in others):
        return set()
    places = [Place(layer, projection) for layer in range(depth) for projection in MODULES]
    if isinstance(names, list):
        return {p for p in places if any(f".{p.peft_path}".endswith(f".{n}") for n in names)}
    if not isinstance(names, str) or not PLAIN_PATTERN.fullmatch(names):
        return set()
    repeated, choices = names.count("*") + names.count("+"), names.count("|")
    if repeated > MOST_REPEATED or choices > MOST_CHOICES:
        return set()
    try:
        return {place for place in places if re.fullmatch(names, place.peft_path)}
    except re.error:
        return set()


def targets(places: Iterable[Place]) -> list[str]:
    """The option `target_modules`: whole names, because `output.dense` names two modules."""
    return sorted({place.peft_path for place in places})


def require_plain(options: Mapping[str, Any], known: Collection[str], method: str) -> None:
    """Raises `Unsupported` for an option that is set and not known: it may change the result."""
    unset: tuple[Any, ...] = (None, False, "none", {}, [])
    for name, value in options.items():
        if name not in known and not any(value == plain for plain in unset):
            raise Unsupported(
                f"PEFT: {method} with {name} is not supported. Received: {preview(value)}"
            )
