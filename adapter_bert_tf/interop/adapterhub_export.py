"""Writes adapters and heads as AdapterHub's library `adapters` reads them."""

import dataclasses
import json

import numpy as np
import safetensors
import safetensors.numpy

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.interop.adapterhub_format import (
    ACTIVATIONS,
    CONFIG,
    FIXED,
    HEAD_CONFIG,
    HEAD_FIXED,
    HEAD_WEIGHTS,
    WEIGHTS,
    head_names,
    require,
    variable_names,
)
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.files import write_files
from adapter_bert_tf.store.folders import require_free


def export_adapter(saved, folder, base):
    """Writes a `SavedAdapter` as the library's files, under a temporary name first.

    Args:
      saved: `SavedAdapter` of a classification task.
      folder: path where nothing is yet, or an empty folder.
      base: `Base` of the adapter: a pooler that was not trained is the base's.

    Raises:
      InputError: when the library has no place for what was trained, or the base is another one.
    """
    config, adapter = saved.config, _exportable(saved)
    check_base(config, base.fingerprint())
    require_free(folder)
    name = contents.name_of(config).replace(".", "_")
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
    names = variable_names(adapter, base.config.num_layers, name)
    files = {
        CONFIG: _json(about | {"config": _hub_config(adapter, base.config)}),
        WEIGHTS: _tensors(weights, names),
        HEAD_CONFIG: _json(about | {"config": _hub_head(config)}),
        HEAD_WEIGHTS: _tensors(weights, head_names(name)),
    }
    write_files(folder, files, require_free)


def _exportable(saved: SavedAdapter) -> AdapterConfig:
    """The adapters of what the library has a place for. Raises `InputError`."""
    config, adapter = saved.config, contents.adapter_of(saved.config)
    if saved.members:
        raise InputError(
            "A fusion is not written in the library's format. Export its members one by one, which "
            "are adapter directories in its `members/`, and fuse them there."
        )
    if not isinstance(adapter, AdapterConfig) or adapter != dataclasses.replace(
        adapter, depth=1, layer_norm=False, normalize_output=False
    ):
        raise InputError(
            "AdapterHub: only plain bottleneck adapters are exported. Received: "
            f"{config['adapter']!r}"
        )
    norms = [name for name in saved.weights if "/LayerNorm/" in name]
    require(
        not norms,
        "its adapters have no trained LayerNorms of the base; train with train_layer_norm=False",
        norms[:1],
        "train_layer_norm=False",
    )
    require(
        config["head"] == "classification", "only classification heads are exported", config["head"]
    )
    return adapter


def _hub_config(adapter, sizes):
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    require(adapter.activation in names, "no such activation there", adapter.activation)
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
        "num_labels": contents.num_outputs(config),
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
