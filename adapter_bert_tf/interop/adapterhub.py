"""Reads adapters and heads that AdapterHub's library `adapters` has written."""

import os

import numpy as np
import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base.tensors import read_tensors
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.interop.adapterhub_format import (
    ACTIVATIONS,
    CONFIG,
    FIXED,
    HEAD_CONFIG,
    HEAD_FIXED,
    HEAD_WEIGHTS,
    SWITCHES,
    WEIGHTS,
    head_names,
    require,
    variable_names,
)
from adapter_bert_tf.sanitize import parse_json, preview
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.versions import versions
from adapter_bert_tf.store.weights import DTYPES, LARGEST_FILE, check_finite
from adapter_bert_tf.training.tuning import Tuning


def is_adapterhub(folder):
    """Whether a folder was written by the library `adapters`."""
    return storage.exists(os.path.join(folder, HEAD_CONFIG)) or storage.exists(
        os.path.join(folder, "pytorch_adapter.bin")
    )


def import_adapter(folder, base, task=None, labels=(), **inputs):
    """A `SavedAdapter` from a folder of the library.

    The first layer of its classification head, dense and tanh on [CLS], is what BERT calls the
    pooler; it is kept as a trained pooler.

    Args:
      folder: path.
      base: `Base` that the adapter was trained on. The files do not say which that was.
      task: what it was trained for; None: it is called as the adapter is.
      labels: label strings in the order of their ids, where the files only number them.
      **inputs: `texts`, 2 for pairs, and `max_seq_length`; the files do not say these either.

    Raises:
      InputError: when a file is missing or damaged, or it is no bottleneck adapter on BERT with a
        classification head that we can compute.
    """
    described = _read_object(folder, CONFIG)
    require(described.get("model_type") == "bert", "model_type must be 'bert'", described)
    require(
        described.get("hidden_size") == base.config.hidden_size,
        f"hidden_size must be {base.config.hidden_size}, the base's",
        described,
    )
    name, hub = str(described.get("name")), described.get("config")
    require(isinstance(hub, dict), "config must be an object", hub)
    tensors = _read_tensors(folder, WEIGHTS)
    adapter = _adapter_config(hub, tensors, base.config.num_layers)
    weights = {}
    for ours, theirs in variable_names(adapter, base.config.num_layers, name).items():
        weights[ours] = _take(tensors, theirs)
    require(not tensors, "weights that we have no place for", sorted(tensors)[:5])
    found, head = _import_head(folder, name)
    labels = _labels(found, list(labels))
    config = _described(name, task or name, labels, adapter, base, described, inputs)
    return SavedAdapter(config, weights | head)


def _labels(found, given):
    """The labels: those of the files, or those given for them. Raises `InputError`.

    Others than those that the files name would be answers that mean something else.
    """
    if not given or given == found:
        return found
    numbered = all(label in (str(i), f"LABEL_{i}") for i, label in enumerate(found))
    if not numbered or len(given) != len(found):
        raise InputError(
            f"{HEAD_CONFIG} calls its classes {preview(found)}. "
            + ("Name as many labels." if numbered else "Leave other labels out.")
            + f" Received: {preview(given)}"
        )
    return given


def _described(name, task, labels, adapter, base, described, inputs):
    config = schema.describe(
        task,
        labels,
        base.fingerprint(),
        Tuning(train_layer_norm=False, train_pooler=True),
        adapter,
        inputs=inputs,
        versions=versions() | {"imported from": str(described.get("version"))},
    )
    config = contents.named(config, name)
    checks.check(config, f"Adapter {name!r}")
    return config


def _adapter_config(hub, tensors, num_layers):
    require(
        hub.get("architecture") is None,
        "only bottleneck adapters are read",
        hub.get("architecture"),
    )
    wrong = {key: hub[key] for key, value in FIXED.items() if key in hub and hub[key] != value}
    wrong |= {key: hub[key] for key in SWITCHES if not isinstance(hub.get(key, False), bool)}
    allowed = {key: FIXED.get(key, "true or false") for key in wrong}
    require(not wrong, f"these options must be {allowed}", wrong)
    require(
        str(hub.get("non_linearity")) in ACTIVATIONS,
        f"non_linearity must be one of {list(ACTIVATIONS)}",
        hub.get("non_linearity"),
    )
    sizes = {
        (value.shape[0] if value.ndim == 1 else 0)
        for name, value in tensors.items()
        if name.endswith("adapter_down.0.bias")
    }
    require(len(sizes) == 1, "all adapters must have one bottleneck size", sorted(sizes))
    sublayers = [
        ours
        for ours, option in (("attention", "mh_adapter"), ("feed_forward", "output_adapter"))
        if hub.get(option)
    ]
    left_out = [] if hub.get("leave_out") is None else hub["leave_out"]
    require(isinstance(left_out, list), "leave_out must be a list of layers", left_out)
    parallel = hub.get("is_parallel", False)
    return AdapterConfig.from_dict(
        {
            "bottleneck_size": int(sizes.pop()),
            "activation": ACTIVATIONS[hub["non_linearity"]],
            "dropout": hub.get("dropout", 0.0),
            "scale": hub.get("scaling", 1.0),
            "sublayers": sublayers,
            "layers": [i for i in range(num_layers) if i not in left_out] if left_out else None,
            "placement": "parallel" if parallel else "serial",
            "normalize_input": hub.get("original_ln_before", False) and not parallel,
        }
    )


def _import_head(folder, name):
    """(labels, weights) of the classification head; no labels for regression."""
    head = _read_object(folder, HEAD_CONFIG).get("config")
    require(isinstance(head, dict), "the head's config must be an object", head)
    wrong = {key: head.get(key) for key, value in HEAD_FIXED.items() if head.get(key) != value}
    require(
        not wrong,
        f"these options of the head must be { ({key: HEAD_FIXED[key] for key in wrong}) }",
        wrong,
    )
    tensors = _read_tensors(folder, HEAD_WEIGHTS)
    weights = {ours: _take(tensors, theirs) for ours, theirs in head_names(name).items()}
    require(not tensors, "weights of the head that we have no place for", sorted(tensors)[:5])
    count = len(weights["head/bias"])
    ids = head.get("label2id") or {str(i): i for i in range(count)}
    require(
        isinstance(ids, dict)
        and sorted(map(repr, ids.values())) == sorted(map(repr, range(count))),
        f"label2id must number {count} labels",
        ids,
    )
    return (sorted(ids, key=ids.__getitem__) if count > 1 else []), weights


def _take(tensors, name):
    require(name in tensors, "a weight is missing", name)
    value = tensors.pop(name).astype(np.float32)
    return np.ascontiguousarray(value.T)  # PyTorch has [out, in]; a bias is its own transpose.


def _read_object(folder, name):
    path = os.path.join(folder, name)
    _require_file(folder, path)
    try:
        values = parse_json(storage.read_bytes(path, schema.LARGEST_CONFIG), distinct=True)
    except (ValueError, tf.errors.OpError) as error:
        raise InputError(f"{path} is damaged: {error}") from error
    require(isinstance(values, dict), f"{path} must hold an object", values)
    return values


def _read_tensors(folder, name):
    path = os.path.join(folder, name)
    _require_file(folder, path)
    require(storage.stat(path).length <= LARGEST_FILE, "a file is too large", path)
    tensors = read_tensors(path)
    kinds = {str(array.dtype) for array in tensors.values()}
    require(kinds <= set(DTYPES), f"weights must be of {list(DTYPES)}", sorted(kinds))
    check_finite(tensors, f"in {path}")
    return tensors


def _require_file(folder, path):
    if not storage.exists(path):
        raise InputError(
            f"{path} is not there. Found: {sorted(storage.listdir(folder))[:10]}. A `.bin` is "
            "a pickle and is not read: save the adapter again, with its head, with "
            "model.save_adapter(folder, name, use_safetensors=True)."
        )
