"""The files of AdapterHub's library `adapters`: bottleneck adapters and their heads on BERT.

A folder of `save_adapter(..., use_safetensors=True)`: `adapter_config.json`, `adapter.safetensors`,
`head_config.json`, `model_head.safetensors`.
"""

import json
import os

import numpy as np
import safetensors
import safetensors.numpy
import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.specs import POOLER
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.store import schema
from adapter_bert_tf.store.directory import SavedAdapter, check_base, write_files
from adapter_bert_tf.store.versions import versions
from adapter_bert_tf.store.weights import DTYPES, LARGEST_FILE, check_finite
from adapter_bert_tf.training.trained import Tuning

CONFIG, WEIGHTS = "adapter_config.json", "adapter.safetensors"
HEAD_CONFIG, HEAD_WEIGHTS = "head_config.json", "model_head.safetensors"
ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "swish": "swish",
    "silu": "swish",
    "tanh": "tanh",
}
# Where the library inserts adapters, and what it calls the parts.
PLACES = {"attention": "attention.output", "feed_forward": "output"}
PARTS = {
    "down_kernel": "adapter_down.0.weight",
    "down_bias": "adapter_down.0.bias",
    "up_kernel": "adapter_up.weight",
    "up_bias": "adapter_up.bias",
}
# Of the library's many options, the values of those that we compute.
FIXED = {
    "ln_before": False,
    "ln_after": False,
    "phm_layer": False,
    "use_gating": False,
    "inv_adapter": None,
    "adapter_residual_before_ln": False,
    "original_ln_after": True,
    "residual_before_ln": True,
    "stochastic_depth": 0.0,
}
SWITCHES = ("mh_adapter", "output_adapter", "is_parallel", "original_ln_before")
HEAD_FIXED = {
    "head_type": "classification",
    "layers": 2,
    "activation_function": "tanh",
    "use_pooler": False,
    "bias": True,
}


def is_adapterhub(folder):
    """Whether a folder was written by the library `adapters`."""
    return storage.exists(os.path.join(folder, HEAD_CONFIG)) or storage.exists(
        os.path.join(folder, "pytorch_adapter.bin")
    )


def import_adapter(folder, base, **inputs):
    """A `SavedAdapter` from a folder of the library.

    The first layer of its classification head, dense and tanh on [CLS], is what BERT calls the
    pooler; it is kept as a trained pooler.

    Args:
      folder: path.
      base: `Base` that the adapter was trained on. The files do not say which that was.
      **inputs: `texts`, 2 for pairs, and `max_seq_length`; the files do not say these either.

    Raises:
      InputError: when a file is missing or damaged, or it is no bottleneck adapter on BERT with a
        classification head that we can compute.
    """
    described = _read_json(folder, CONFIG)
    _require(described.get("model_type") == "bert", "model_type must be 'bert'", described)
    _require(
        described.get("hidden_size") == base.config.hidden_size,
        f"hidden_size must be {base.config.hidden_size}, the base's",
        described,
    )
    name, hub = str(described.get("name")), described.get("config")
    _require(isinstance(hub, dict), "config must be an object", hub)
    tensors = _read_tensors(folder, WEIGHTS)
    adapter = _adapter_config(hub, tensors, base.config.num_layers)
    weights = {}
    for ours, theirs in _names(adapter, base.config.num_layers, name).items():
        weights[ours] = _take(tensors, theirs)
    _require(not tensors, "weights that we have no place for", sorted(tensors)[:5])
    labels, head = _import_head(folder, name)
    return _saved(name, labels, adapter, weights | head, base, described, inputs)


def _saved(name, labels, adapter, weights, base, described, inputs):
    config = schema.describe(
        name,
        labels,
        base.fingerprint(),
        Tuning(train_layer_norm=False, train_pooler=True),
        adapter,
        inputs=inputs,
        versions=versions() | {"imported from": str(described.get("version"))},
    )
    schema.check(config, f"Adapter {name!r}")
    return SavedAdapter(config, weights)


def _adapter_config(hub, tensors, num_layers):
    _require(
        hub.get("architecture") is None,
        "only bottleneck adapters are read",
        hub.get("architecture"),
    )
    wrong = {key: hub[key] for key, value in FIXED.items() if key in hub and hub[key] != value}
    wrong |= {key: hub[key] for key in SWITCHES if not isinstance(hub.get(key, False), bool)}
    allowed = {key: FIXED.get(key, "true or false") for key in wrong}
    _require(not wrong, f"these options must be {allowed}", wrong)
    _require(
        str(hub.get("non_linearity")) in ACTIVATIONS,
        f"non_linearity must be one of {list(ACTIVATIONS)}",
        hub.get("non_linearity"),
    )
    sizes = {
        value.shape[0] for name, value in tensors.items() if name.endswith("adapter_down.0.bias")
    }
    _require(len(sizes) == 1, "all adapters must have one bottleneck size", sorted(sizes))
    sublayers = [
        ours
        for ours, option in (("attention", "mh_adapter"), ("feed_forward", "output_adapter"))
        if hub.get(option)
    ]
    left_out = [] if hub.get("leave_out") is None else hub["leave_out"]
    _require(isinstance(left_out, list), "leave_out must be a list of layers", left_out)
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


def _names(adapter, num_layers, name):
    """Dict from our names of an adapter's variables to the library's."""
    theirs_at = "bert.encoder.layer.{}.{}.adapters.{}.{}".format
    return {
        f"adapters/layer_{i}/{sublayer}/{part}": theirs_at(i, PLACES[sublayer], name, theirs)
        for i in adapter.layer_indices(num_layers)
        for sublayer in adapter.sublayers
        for part, theirs in PARTS.items()
    }


def _import_head(folder, name):
    """(labels, weights) of the classification head; no labels for regression."""
    head = _read_json(folder, HEAD_CONFIG).get("config")
    _require(isinstance(head, dict), "the head's config must be an object", head)
    wrong = {key: head.get(key) for key, value in HEAD_FIXED.items() if head.get(key) != value}
    _require(
        not wrong,
        f"these options of the head must be { ({key: HEAD_FIXED[key] for key in wrong}) }",
        wrong,
    )
    tensors = _read_tensors(folder, HEAD_WEIGHTS)
    weights = {ours: _take(tensors, theirs) for ours, theirs in _head_names(name).items()}
    _require(not tensors, "weights of the head that we have no place for", sorted(tensors)[:5])
    count = len(weights["head/bias"])
    ids = head.get("label2id") or {str(i): i for i in range(count)}
    _require(
        isinstance(ids, dict)
        and sorted(map(repr, ids.values())) == sorted(map(repr, range(count))),
        f"label2id must number {count} labels",
        ids,
    )
    return (sorted(ids, key=ids.__getitem__) if count > 1 else []), weights


def _head_names(name):
    return {
        f"{POOLER}/kernel": f"heads.{name}.1.weight",
        f"{POOLER}/bias": f"heads.{name}.1.bias",
        "head/kernel": f"heads.{name}.4.weight",
        "head/bias": f"heads.{name}.4.bias",
    }


def _take(tensors, name):
    _require(name in tensors, "a weight is missing", name)
    value = tensors.pop(name).astype(np.float32)
    return np.ascontiguousarray(value.T)  # PyTorch has [out, in]; a bias is its own transpose.


def export_adapter(saved, folder, base):
    """Writes a `SavedAdapter` as the library's files, under a temporary name first.

    Args:
      saved: `SavedAdapter` of a classification task.
      folder: path where nothing is yet.
      base: `Base` of the adapter: a pooler that was not trained is the base's.

    Raises:
      InputError: when the library has no place for what was trained, or the base is another one.
    """
    config, adapter = saved.config, schema.adapter_of(saved.config)
    check_base(config, base.fingerprint())
    norms = [name for name in saved.weights if "/LayerNorm/" in name]
    _require(
        not norms,
        "its adapters have no trained LayerNorms of the base; train with train_layer_norm=False",
        norms[:1],
        "train_layer_norm=False",
    )
    _require(
        config["head"] == "classification", "only classification heads are exported", config["head"]
    )
    _require(
        isinstance(adapter, AdapterConfig) and adapter.depth == 1 and not adapter.layer_norm,
        "only plain bottleneck adapters are exported",
        config["adapter"],
    )
    _require(not storage.exists(folder), "the folder must not be there yet", folder)
    name = config["task"].replace(".", "_")
    about = {
        "model_type": "bert",
        "model_class": "BertAdapterModel",
        "model_name": "",
        "hidden_size": base.config.hidden_size,
        "name": name,
        # Of the format: without it the library takes `gelu` for the tanh form.
        "version": "adapters.1.3.0",
    }
    weights = base.weights | saved.weights
    names = _names(adapter, base.config.num_layers, name)
    files = {
        CONFIG: _json(about | {"config": _hub_config(adapter, base.config)}),
        WEIGHTS: _tensors(weights, names),
        HEAD_CONFIG: _json(about | {"config": _hub_head(config)}),
        HEAD_WEIGHTS: _tensors(weights, _head_names(name)),
    }
    write_files(folder, files)


def _hub_config(adapter, sizes):
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    _require(adapter.activation in names, "no such activation there", adapter.activation)
    kept = adapter.layer_indices(sizes.num_layers)
    return FIXED | {
        "mh_adapter": "attention" in adapter.sublayers,
        "output_adapter": "feed_forward" in adapter.sublayers,
        "non_linearity": names[adapter.activation],
        "dropout": float(adapter.dropout),
        "reduction_factor": sizes.hidden_size / adapter.bottleneck_size,
        "original_ln_before": adapter.normalize_input,
        "scaling": float(adapter.scale),
        "is_parallel": adapter.placement == "parallel",
        "init_weights": "bert",
        "cross_adapter": False,
        "leave_out": [i for i in range(sizes.num_layers) if i not in kept],
    }


def _hub_head(config):
    labels = config["labels"]
    return HEAD_FIXED | {
        "num_labels": schema.num_outputs(config),
        "dropout_prob": None,
        "label2id": {label: i for i, label in enumerate(labels)} if labels else None,
    }


def _tensors(weights, names):
    return safetensors.numpy.save(
        {
            theirs: np.ascontiguousarray(np.asarray(weights[ours], np.float32).T)
            for ours, theirs in names.items()
        },
        metadata={"format": "pt"},
    )


def _json(values):
    return json.dumps(values, indent=2).encode()  # Labels in the order of their ids.


def _read_json(folder, name):
    path = os.path.join(folder, name)
    _require_file(folder, path)
    try:
        values = schema.read_json(storage.read_bytes(path, schema.LARGEST_CONFIG).decode("utf-8"))
    except (ValueError, RecursionError, tf.errors.OpError) as error:
        raise InputError(f"{path} is damaged: {error}") from error
    _require(isinstance(values, dict), f"{path} must hold an object", values)
    return values


def _read_tensors(folder, name):
    path = os.path.join(folder, name)
    _require_file(folder, path)
    _require(storage.stat(path).length <= LARGEST_FILE, "a file is too large", path)
    try:
        tensors = safetensors.numpy.load(storage.read_bytes(path))
    except (safetensors.SafetensorError, KeyError, tf.errors.OpError) as error:
        raise InputError(f"{path} is damaged: {error}") from error
    kinds = {str(array.dtype) for array in tensors.values()}
    _require(kinds <= set(DTYPES), f"weights must be of {list(DTYPES)}", sorted(kinds))
    check_finite(tensors, f"in {path}")
    return tensors


def _require_file(folder, path):
    if not storage.exists(path):
        raise InputError(
            f"{path} is not there. Found: {sorted(storage.listdir(folder))[:10]}. A `.bin` is "
            "a pickle and is not read: save the adapter again, with its head, with "
            "model.save_adapter(folder, name, use_safetensors=True)."
        )


def _require(condition, message, received, *arguments):
    if not condition:
        raise InputError(f"AdapterHub: {message}. Received: {received!r}", *arguments)
