"""Writes adapters and heads in the format of AdapterHub's library `adapters`."""

import dataclasses
import json

import numpy as np
import safetensors
import safetensors.numpy

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.errors import Unsupported
from adapter_bert_tf.interop import adapterhub_format as hub_format
from adapter_bert_tf.interop.adapterhub_format import require
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.adapter_dir import require_free
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.files import write_files


def export_adapter(saved, folder, base):
    """Writes a `SavedAdapter` of a classification task as the library's files, atomically.

    `folder` is new or empty; a pooler that was not trained is the base's. Raises `InputError` when
    the format does not support the adapter, or the base differs.
    """
    config, adapter = saved.config, _require_exportable(saved)
    check_base(config, base.fingerprint())
    require_free(folder)
    name = contents.name_of(config).replace(".", "_")
    header = {
        "model_type": "bert",
        "model_class": "BertAdapterModel",
        "model_name": "",
        "hidden_size": base.config.hidden_size,
        "name": name,
        # Version of the format; without it the library takes `gelu` for the tanh form.
        "version": "adapters.1.3.0",
    }
    weights = base.weights | saved.weights
    names = hub_format.variable_names(adapter, base.config.num_layers, name)
    files = {
        hub_format.CONFIG: _serialize_json(header | {"config": _hub_config(adapter, base.config)}),
        hub_format.WEIGHTS: _serialize_tensors(weights, names),
        hub_format.HEAD_CONFIG: _serialize_json(header | {"config": _hub_head(config)}),
        hub_format.HEAD_WEIGHTS: _serialize_tensors(weights, hub_format.head_names(name)),
    }
    write_files(folder, files, require_free)


def _require_exportable(saved: SavedAdapter) -> AdapterConfig:
    """Returns the adapter's configuration; raises `InputError` if it is not supported."""
    config, adapter = saved.config, contents.adapter_of(saved.config)
    if saved.members:
        raise Unsupported(
            "A fusion cannot be exported. Export the adapter directories in its `members/`, and "
            "fuse them with the library."
        )
    if not isinstance(adapter, AdapterConfig) or adapter != dataclasses.replace(
        adapter, depth=1, layer_norm=False, normalize_output=False
    ):
        raise Unsupported(
            "AdapterHub: only plain bottleneck adapters can be exported. Received: "
            f"{config['adapter']!r}"
        )
    norms = [name for name in saved.weights if "/LayerNorm/" in name]
    require(
        not norms,
        "the format has no trained LayerNorms of the base; train with train_layer_norm=False",
        norms[:1],
        "train_layer_norm=False",
    )
    head = config["head"]
    require(head == "classification", "only classification heads can be exported", head)
    return adapter


def _hub_config(adapter, sizes):
    names = {own_name: hub_name for hub_name, own_name in reversed(hub_format.ACTIVATIONS.items())}
    require(adapter.activation in names, "the activation is not supported", adapter.activation)
    layers = adapter.layer_indices(sizes.num_layers)
    return hub_format.REQUIRED_OPTIONS | {
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
        "leave_out": [i for i in range(sizes.num_layers) if i not in layers],
    }


def _hub_head(config):
    labels = config["labels"]
    return hub_format.REQUIRED_HEAD_OPTIONS | {
        "num_labels": contents.num_outputs(config),
        "dropout_prob": None,
        "label2id": {label: i for i, label in enumerate(labels)} if labels else None,
    }


def _serialize_tensors(weights, names):
    tensors = {
        hub_name: np.ascontiguousarray(np.asarray(weights[own_name], np.float32).T)
        for own_name, hub_name in names.items()
    }
    return safetensors.numpy.save(tensors, metadata={"format": "pt"})


def _serialize_json(values):
    return json.dumps(values, indent=2).encode()  # Not sorted: labels are in the order of ids.
