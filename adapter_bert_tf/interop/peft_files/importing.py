"""Reads LoRA and (IA)^3 with their heads, written by Hugging Face's library PEFT."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from adapter_bert_tf.adapters.variable_specs import POOLER
from adapter_bert_tf.base import Base
from adapter_bert_tf.errors import InputError, Missing
from adapter_bert_tf.interop.foreign_files import float32
from adapter_bert_tf.interop.peft_files import layout
from adapter_bert_tf.interop.peft_files.layout import WRAPPED, require, require_sound
from adapter_bert_tf.interop.peft_files.methods import METHODS
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store.derivation import derive, file_source
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.file_names import CONFIG
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.training.tuning import Tuning

# PEFT's types of tasks: our type, and the layer that is the head of transformers' model.
HEADS = {
    "SEQ_CLS": ("classification", "classifier"),
    "TOKEN_CLS": ("tags", "classifier"),
    "QUESTION_ANS": ("span", "qa_outputs"),
}
NORM = re.compile(r"(bert\.(?:embeddings|encoder\.layer\.\d+\..*))\.LayerNorm\.(weight|bias)")


def import_peft(
    folder: str, base: Base, task: str | None = None, labels: Sequence[str] = (), **inputs: Any
) -> SavedAdapter:
    """Imports a folder that `PeftModel.save_pretrained` wrote, as a `SavedAdapter`.

    PEFT's files have no labels: `labels` are those of the model's `id2label`, in this order; the
    default are their numbers. `task` defaults to the folder's name. `inputs` are settings such as
    `texts` (2 for pairs) and `max_seq_length`; those that the type does not have are ignored.
    Raises `InputError` for a missing or damaged file, or anything but LoRA or (IA)^3 of BERT with a
    head for classes, a score, tags or questions.
    """
    options, tensors = layout.read_options(folder), layout.read_weights(folder)
    method = str(options.get("peft_type"))
    require(method in METHODS, f"the method must be one of {list(METHODS)}", method)
    adapter, weights = METHODS[method].read(options, tensors, base)
    task_kind = str(options.get("task_type"))
    require(task_kind in HEADS, f"task_type must be one of {list(HEADS)}", task_kind)
    type_name, layer = HEADS[task_kind]
    weights |= _saved_modules(tensors, layer)
    require(not tensors, "these weights are not supported", sorted(tensors)[:5])
    type_name, labels = _type_and_labels(type_name, labels, layer, weights["head/bias"].size)
    kind, trains_pooler = TASK_TYPES[type_name], f"{POOLER}/kernel" in weights
    has_pooler = base.has_pooler or trains_pooler or "pooler" in kind.unused
    require(has_pooler, "the head needs a base with a pooler", base.origin)
    _compare_names(options, base)
    has_norms = any("/LayerNorm/" in name for name in weights)
    config = schema.describe(
        task or os.path.basename(os.path.normpath(folder)),
        labels,
        base.fingerprint(),
        Tuning(train_layer_norm=has_norms, train_pooler=trains_pooler),
        adapter,
        type_name,
        inputs=kind.inputs_for(labels) | {k: v for k, v in inputs.items() if k in kind.inputs},
        versions=installed_versions() | {"imported from": f"PEFT {options.get('peft_version')}"},
    )
    files = [file_source(os.path.join(folder, file)) for file in (CONFIG, layout.WEIGHTS)]
    config = derive(config, "import", files)
    checks.check(config, f"Adapter {contents.name_of(config)!r}")
    if has_norms:  # An adapter has all LayerNorms or none; the others are the base's.
        names = [name for name in contents.expected_shapes(config) if "/LayerNorm/" in name]
        weights = {name: base.weights[name] for name in names} | weights
    _check_shapes(config, weights)
    return SavedAdapter(config, weights)


def _type_and_labels(
    type_name: str, labels: Sequence[str], layer: str, outputs: int
) -> tuple[str, Sequence[str]]:
    """The type of a head of some outputs, and its labels: the given ones, or their numbers."""
    if type_name == "classification" and outputs == 1:
        return "regression", ()
    if (fixed := TASK_TYPES[type_name].labels) is not None:
        require(outputs == len(fixed), f"{layer} must have {len(fixed)} outputs", outputs)
        return type_name, fixed
    labels = labels or tuple(map(str, range(outputs)))
    if len(labels) != outputs:
        raise Missing(f"The head has {outputs} outputs. Received labels: {preview(list(labels))}")
    return type_name, labels


def _compare_names(options: Mapping[str, Any], base: Base) -> None:
    """Warns if the names of the bases differ: the files have no digest to compare."""
    theirs, own = options.get("base_model_name_or_path"), base.origin and base.origin.name
    if theirs and own and str(theirs).rpartition("/")[2] != own.rpartition("/")[2]:
        logging.warning(
            f"PEFT: the adapter was trained on {preview(theirs)}, and the base is {preview(own)}. "
            "With other weights its results are wrong."
        )


def _saved_modules(tensors: dict[str, np.ndarray], layer: str) -> dict[str, np.ndarray]:
    """Removes and returns head, pooler and LayerNorms of `modules_to_save`, by common names."""
    layers = {layer: "head", layout.POOLER_PATH: POOLER}
    found: dict[str, np.ndarray] = {}
    for name in list(tensors):
        module, _, weight = name.removeprefix(WRAPPED).rpartition(".")
        if module in layers and weight in ("weight", "bias"):
            own = f"{layers[module]}/{'kernel' if weight == 'weight' else 'bias'}"
        elif match := NORM.fullmatch(name.removeprefix(WRAPPED)):
            path = re.sub(r"layer\.(\d+)", r"layer_\1", match[1]).replace(".", "/")
            own = f"{path}/LayerNorm/{'gamma' if match[2] == 'weight' else 'beta'}"
        else:
            continue
        found[own] = float32(tensors.pop(name))
    has_head = {"head/kernel", "head/bias"} <= set(found)
    message = f"{layer} is missing, as PEFT leaves it out when it converts (docs/from_peft.md)"
    require_sound(has_head, message, sorted(found))
    return found


def _check_shapes(config: dict[str, Any], weights: dict[str, np.ndarray]) -> None:
    expected = contents.expected_shapes(config)
    given = {name: array.shape for name, array in weights.items()}
    different = {n for n in expected | given if expected.get(n) != given.get(n)}
    if different:
        name = min(different)
        raise InputError(
            f"PEFT: {name} must be of shape {expected.get(name)} with this base. Received: "
            f"{given.get(name)}. Is it the base that the adapter was trained on (base_model)?",
            "base_model",
        )
