"""Reads adapters and heads written by AdapterHub's library `adapters`."""

import os

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base.tensors import read_tensors
from adapter_bert_tf.errors import Mismatch, NotFound
from adapter_bert_tf.interop import adapterhub_format as hub_format
from adapter_bert_tf.interop.adapterhub_format import HEAD_CONFIG, require
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.weights import DTYPES, MAX_FILE_BYTES, check_finite
from adapter_bert_tf.training.tuning import Tuning


def is_adapterhub(folder):
    """Whether a folder was written by the library `adapters`."""
    return storage.exists(os.path.join(folder, HEAD_CONFIG)) or storage.exists(
        os.path.join(folder, "pytorch_adapter.bin")
    )


def import_adapter(folder, base, task=None, labels=(), **inputs):
    """Imports a folder of the library, of the base's type, as a `SavedAdapter`.

    The first layer of its classification head, dense and tanh on [CLS], is BERT's pooler; it
    becomes a trained pooler. The default `task` is the adapter's name. `labels`, in the order of
    their ids, are needed if the files only number them; `inputs` are `texts` (2 for pairs) and
    `max_seq_length`, which the files do not hold. Raises `InputError` for a missing or damaged
    file, or anything but a supported bottleneck adapter on BERT with a classification head.
    """
    file_config, hidden_size = _read_object(folder, hub_format.CONFIG), base.config.hidden_size
    require(file_config.get("model_type") == "bert", "model_type must be 'bert'", file_config)
    matches = file_config.get("hidden_size") == hidden_size
    require(matches, f"hidden_size must be {hidden_size}, the base's", file_config)
    name, hub_config = str(file_config.get("name")), file_config.get("config")
    require(isinstance(hub_config, dict), "config must be an object", hub_config)
    tensors = _read_tensors(folder, hub_format.WEIGHTS)
    adapter = _adapter_config(hub_config, tensors, base.config.num_layers)
    names = hub_format.variable_names(adapter, base.config.num_layers, name)
    weights = {own_name: _pop_weight(tensors, hub_name) for own_name, hub_name in names.items()}
    require(not tensors, "some weights are not supported", sorted(tensors)[:5])
    file_labels, head = _import_head(folder, name)
    labels = _resolve_labels(file_labels, list(labels))
    versions = installed_versions() | {"imported from": str(file_config.get("version"))}
    tuning = Tuning(train_layer_norm=False, train_pooler=True)
    task, fingerprint = task or name, base.fingerprint()
    config = schema.describe(
        task, labels, fingerprint, tuning, adapter, inputs=inputs, versions=versions
    )
    config = contents.named(config, name)
    checks.check(config, f"Adapter {name!r}")
    return SavedAdapter(config, weights | head)


def _resolve_labels(file_labels, labels):
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


def _adapter_config(hub, tensors, num_layers):
    architecture, activation = hub.get("architecture"), hub.get("non_linearity")
    require(architecture is None, "only bottleneck adapters are supported", architecture)
    required, booleans = hub_format.REQUIRED_OPTIONS, hub_format.BOOLEAN_OPTIONS
    invalid = {key: hub[key] for key, value in required.items() if hub.get(key, value) != value}
    invalid |= {key: hub[key] for key in booleans if not isinstance(hub.get(key, False), bool)}
    allowed = {key: required.get(key, "true or false") for key in invalid}
    require(not invalid, f"these options must be {allowed}", invalid)
    known = str(activation) in hub_format.ACTIVATIONS
    require(known, f"non_linearity must be one of {list(hub_format.ACTIVATIONS)}", activation)
    biases = [value for name, value in tensors.items() if name.endswith("adapter_down.0.bias")]
    sizes = {value.shape[0] if value.ndim == 1 else 0 for value in biases}
    require(len(sizes) == 1, "all adapters must have one bottleneck size", sorted(sizes))
    options = {"attention": "mh_adapter", "feed_forward": "output_adapter"}
    sublayers = [sublayer for sublayer, option in options.items() if hub.get(option)]
    skipped = [] if hub.get("leave_out") is None else hub["leave_out"]
    require(isinstance(skipped, list), "leave_out must be a list of layers", skipped)
    layers = [i for i in range(num_layers) if i not in skipped] if skipped else None
    parallel = hub.get("is_parallel", False)
    return AdapterConfig.from_dict(
        {
            "bottleneck_size": int(sizes.pop()),
            "activation": hub_format.ACTIVATIONS[activation],
            "dropout": hub.get("dropout", 0.0),
            "scale": hub.get("scaling", 1.0),
            "sublayers": sublayers,
            "layers": layers,
            "placement": "parallel" if parallel else "serial",
            "normalize_input": hub.get("original_ln_before", False) and not parallel,
        }
    )


def _import_head(folder, name):
    """Reads (labels, weights) of the classification head; no labels for regression."""
    head = _read_object(folder, HEAD_CONFIG).get("config")
    require(isinstance(head, dict), "the head's config must be an object", head)
    required = hub_format.REQUIRED_HEAD_OPTIONS
    invalid = {key: head.get(key) for key in required if head.get(key) != required[key]}
    allowed = {key: required[key] for key in invalid}
    require(not invalid, f"options of the head must be {allowed}", invalid)
    tensors, names = _read_tensors(folder, hub_format.HEAD_WEIGHTS), hub_format.head_names(name)
    weights = {own_name: _pop_weight(tensors, hub_name) for own_name, hub_name in names.items()}
    require(not tensors, "some weights of the head are not supported", sorted(tensors)[:5])
    count = len(weights["head/bias"])
    ids = head.get("label2id") or {str(i): i for i in range(count)}
    numbers = sorted(map(repr, ids.values())) if isinstance(ids, dict) else None
    is_numbered = numbers == sorted(map(repr, range(count)))
    require(is_numbered, f"label2id must number {count} labels", ids)
    return (sorted(ids, key=ids.__getitem__) if count > 1 else []), weights


def _pop_weight(tensors, name):
    require(name in tensors, "a weight is missing", name)
    value = tensors.pop(name).astype(np.float32)
    return np.ascontiguousarray(value.T)  # PyTorch has [out, in]; a bias is its own transpose.


def _read_object(folder, name):
    return storage.read_json_object(_path(folder, name), schema.LARGEST_CONFIG, distinct=True)


def _read_tensors(folder, name):
    path = _path(folder, name)
    require(storage.stat(path).length <= MAX_FILE_BYTES, "a file is too large", path)
    tensors = read_tensors(path)
    dtypes = {str(array.dtype) for array in tensors.values()}
    require(dtypes <= set(DTYPES), f"weights must be of {list(DTYPES)}", sorted(dtypes))
    check_finite(tensors, f"in {path}")
    return tensors


def _path(folder, name):
    path = os.path.join(folder, name)
    if not storage.exists(path):
        raise NotFound(
            f"{path} does not exist. The folder has {sorted(storage.listdir(folder))[:10]}; a "
            "`.bin` is a pickle, which is never read. Save the adapter again, with its head: "
            "model.save_adapter(folder, name, use_safetensors=True)."
        )
    return path
