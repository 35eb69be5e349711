"""Writes LoRA and (IA)^3 with their heads in the format of Hugging Face's library PEFT."""

import json
import re
from typing import Any

import numpy as np
import safetensors.numpy

from adapter_bert_tf.adapters.variable_specs import POOLER
from adapter_bert_tf.base import Base
from adapter_bert_tf.errors import Unsupported
from adapter_bert_tf.interop.peft_files.importing import HEADS
from adapter_bert_tf.interop.peft_files.layout import POOLER_PATH, WEIGHTS, WRAPPED
from adapter_bert_tf.interop.peft_files.methods import METHODS
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.adapter_dir import require_free
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.combining.stacking import require_no_stack
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.file_names import CONFIG
from adapter_bert_tf.store.files import write_files
from adapter_bert_tf.task_types import type_of

TASK_TYPES = {own: (peft, layer) for peft, (own, layer) in HEADS.items()}
TASK_TYPES |= {"regression": TASK_TYPES["classification"]}
VERSION = "0.21.2"


def export_peft(saved: SavedAdapter, folder: str, base: Base) -> None:
    """Writes a `SavedAdapter` as PEFT's files, atomically, into a new or empty folder.

    `PeftModel.from_pretrained(model, folder)` reads them onto a model of transformers that has the
    base's weights and as many labels; PEFT's files do not hold the labels. Raises `InputError` when
    the format does not support the adapter, or the base differs.
    """
    config, adapter = saved.config, contents.adapter_of(saved.config)
    require_no_stack(config, "PEFT")
    method = next((m for m in METHODS.values() if type(adapter) is m.config), None)
    if method is None or saved.members:
        raise Unsupported(
            f"PEFT: only {' and '.join(METHODS)} can be exported. Received: "
            f"{adapter.summary() if adapter else 'no adapter'}"
        )
    kind = type_of(config).name
    if kind not in TASK_TYPES:
        raise Unsupported(f"PEFT: only heads for {list(TASK_TYPES)} can be exported, not {kind}.")
    check_base(config, base.fingerprint())
    require_free(folder)
    options, tensors = method.write(adapter, saved.weights, base.config.num_layers)
    task_kind, layer = TASK_TYPES[kind]
    modules = {layer}
    for name, array in saved.weights.items():
        if name.startswith("adapters/"):
            continue
        module, weight = _module_of(name, layer)
        modules.add(module)
        tensors[f"{WRAPPED}{module}.{weight}"] = array.T
    header = {
        "task_type": task_kind,
        "base_model_name_or_path": None,
        "inference_mode": True,
        "modules_to_save": sorted(modules),
        "peft_version": VERSION,
    }
    files = {
        CONFIG: json.dumps(options | header, indent=2).encode(),
        WEIGHTS: safetensors.numpy.save(
            {n: np.ascontiguousarray(a, np.float32) for n, a in tensors.items()}, {"format": "pt"}
        ),
    }
    write_files(folder, files, require_free)


def _module_of(name: str, layer: str) -> tuple[str, str]:
    """The library's module and weight of one of our variables of head, pooler or LayerNorm."""
    path, _, weight = name.rpartition("/")
    weights: dict[str, Any] = {"kernel": "weight", "gamma": "weight", "beta": "bias"}
    if path in ("head", POOLER):
        module = {"head": layer, POOLER: POOLER_PATH}[path]
    elif path.endswith("LayerNorm"):
        module = re.sub(r"layer_(\d+)", r"layer.\1", path.replace("/", "."))
    else:
        raise Unsupported(f"PEFT: {name} cannot be exported.")
    return module, weights.get(weight, weight)
