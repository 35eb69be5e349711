"""Writes adapters and heads in the format of AdapterHub's library `adapters`."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from adapter_bert_tf.base import Base
from adapter_bert_tf.errors import Unsupported
from adapter_bert_tf.interop.adapterhub_files import layout
from adapter_bert_tf.interop.adapterhub_files.heads import hub_head
from adapter_bert_tf.interop.adapterhub_files.layout import require
from adapter_bert_tf.interop.adapterhub_files.methods import write_adapter
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.adapter_dir import require_free
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.files import write_files

# Attributes of PyTorch's `ModuleDict` (2.13), one of them from transformers: no names of adapters.
TAKEN_NAMES = frozenset(
    "T_destination add_module apply bfloat16 buffers call_super_init children clear compile cpu "
    "cuda double dump_patches eval extra_repr float forward get_buffer get_extra_state "
    "get_parameter get_submodule half ipu items keys load_state_dict modules mtia named_buffers "
    "named_children named_modules named_parameters parameters pop register_backward_hook "
    "register_buffer register_forward_hook register_forward_pre_hook register_full_backward_hook "
    "register_full_backward_pre_hook register_load_state_dict_post_hook "
    "register_load_state_dict_pre_hook register_module register_parameter "
    "register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state "
    "set_submodule share_memory smart_apply state_dict to to_empty train training type update "
    "values xpu zero_grad".split()
)


def export_adapter(saved: SavedAdapter, folder: str, base: Base) -> str:
    """Writes a `SavedAdapter` as the library's files, atomically; returns its name there.

    `folder` is new or empty; a pooler that was not trained is the base's. Raises `InputError` when
    the format does not support the adapter, or the base differs.
    """
    config, name = saved.config, hub_name(contents.name_of(saved.config))
    if saved.members:
        raise Unsupported(
            "A fusion cannot be exported. Export the adapter directories in its `members/`, and "
            "fuse them with the library."
        )
    check_base(config, base.fingerprint())
    adapter = contents.adapter_of(config)
    # The library stacks adapters of files of their own.
    adapter = adapter and adapter.trained_part
    options, tensors = write_adapter(adapter, saved.weights, base.config, name)
    _require_no_norms(saved)
    require_free(folder)
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
    head_options, head_names = hub_head(config, name, base)
    files = {
        layout.CONFIG: _serialize_json(header | {"config": options}),
        layout.WEIGHTS: _serialize_tensors(tensors),
        layout.HEAD_CONFIG: _serialize_json(header | {"config": head_options}),
        layout.HEAD_WEIGHTS: _serialize_tensors(
            {hub: weights[own].T for own, hub in head_names.items()}
        ),
    }
    write_files(folder, files, require_free)
    return name


def hub_name(name: str) -> str:
    """A name as the library can hold it: no dot, and no attribute of PyTorch's modules."""
    name = name.replace(".", "_")
    return f"{name}_adapter" if name in TAKEN_NAMES or name.startswith("_") else name


def _require_no_norms(saved: SavedAdapter) -> None:
    norms = [name for name in saved.weights if "/LayerNorm/" in name]
    require(
        not norms,
        "the format has no trained LayerNorms of the base; train with train_layer_norm=False",
        norms[:1],
        "train_layer_norm=False",
    )


def _serialize_tensors(tensors: Mapping[str, np.ndarray]) -> bytes:
    arrays = {name: np.ascontiguousarray(array, np.float32) for name, array in tensors.items()}
    content: bytes = safetensors.numpy.save(arrays, metadata={"format": "pt"})
    return content


def _serialize_json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, indent=2).encode()  # Not sorted: labels are in the order of ids.
