"""Reads adapters and heads written by AdapterHub's library `adapters`."""

import os
from collections.abc import Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.base import Base
from adapter_bert_tf.errors import InputError, Mismatch
from adapter_bert_tf.interop.adapterhub_files import layout
from adapter_bert_tf.interop.adapterhub_files.heads import read_head
from adapter_bert_tf.interop.adapterhub_files.layout import (
    HEAD_CONFIG,
    WEIGHTS,
    require,
    require_sound,
)
from adapter_bert_tf.interop.adapterhub_files.methods import read_adapter
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store.derivation import derive, file_source
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.training.tuning import Tuning


def is_adapterhub(folder: str) -> bool:
    """Whether a folder was written by the library `adapters`."""
    names = (HEAD_CONFIG, "pytorch_adapter.bin")
    if any(storage.exists(os.path.join(folder, name)) for name in names):
        return True
    # Without a head: its configuration and weights, which our own adapters also have.
    if not all(storage.exists(os.path.join(folder, name)) for name in (layout.CONFIG, WEIGHTS)):
        return False
    try:
        return "model_class" in layout.read_object(folder, layout.CONFIG)
    except InputError:
        return False


def import_adapter(
    folder: str, base: Base, task: str | None = None, labels: Sequence[str] = (), **inputs: Any
) -> SavedAdapter:
    """Imports a folder of the library, of the base's type, as a `SavedAdapter`.

    The first layer of a classification head of two layers becomes a trained pooler. The default
    `task` is the adapter's name. `labels`, in the order of their ids, are needed if the files only
    number them; `inputs` are settings that the files do not hold, such as `texts` (2 for pairs) and
    `max_seq_length`; those that the type of the head does not have are ignored. Raises `InputError`
    for a missing or damaged file, or anything but a supported adapter on BERT with a head for
    classes, scores, label sets, questions or tags.
    """
    file_config = layout.read_object(folder, layout.CONFIG)
    hidden_size, depth = base.config.hidden_size, base.config.num_layers
    model_type, width = file_config.get("model_type"), file_config.get("hidden_size")
    require(model_type == "bert", "model_type must be 'bert'", model_type)
    message = f"hidden_size must be {hidden_size}, the base's. Give the adapter's own (base_model)"
    require(width == hidden_size, message, width, "base_model")
    name, options = str(file_config.get("name")), file_config.get("config")
    require_sound(isinstance(options, dict), "config must be an object", options)
    version = str(file_config["version"]) if "version" in file_config else None
    tensors = layout.read_weights(folder, WEIGHTS)
    adapter, weights = read_adapter(options or {}, version, tensors, name, depth)
    head = read_head(folder, name, base)
    kind = TASK_TYPES[head.task_type]
    needs_pooler = not head.has_pooler and "pooler" not in kind.unused
    require(base.has_pooler or not needs_pooler, "the head needs a base with a pooler", base.origin)
    all_labels = _resolve_labels(head.labels, list(labels))
    known = {key: value for key, value in inputs.items() if key in kind.inputs}
    config = schema.describe(
        task or name,
        all_labels,
        base.fingerprint(),
        Tuning(train_layer_norm=False, train_pooler=head.has_pooler),
        adapter,
        head.task_type,
        inputs=kind.inputs_for(all_labels) | known,
        versions=installed_versions() | {"imported from": str(version)},
    )
    config = contents.named(config, name)
    files = (layout.CONFIG, WEIGHTS, HEAD_CONFIG, layout.HEAD_WEIGHTS)
    paths = [os.path.join(folder, file) for file in files]
    config = derive(config, "import", [file_source(p) for p in paths if storage.exists(p)])
    checks.check(config, f"Adapter {name!r}")
    return SavedAdapter(config, weights | head.weights)


def _resolve_labels(file_labels: list[str], labels: list[str]) -> list[str]:
    """Returns the labels of the files, or `labels` if the files only number them."""
    if not labels or labels == file_labels:
        return file_labels
    numbered = all(label in (str(i), f"LABEL_{i}") for i, label in enumerate(file_labels))
    if not numbered or len(labels) != len(file_labels):
        raise Mismatch(
            f"{HEAD_CONFIG} has the labels {preview(file_labels)}. "
            + ("Give the same number of labels." if numbered else "Leave out the other labels.")
            + f" Received: {preview(labels)}"
        )
    return labels
