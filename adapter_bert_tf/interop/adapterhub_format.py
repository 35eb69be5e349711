"""File names and variable names of AdapterHub's library `adapters` (1.3), and reading its files.

`save_adapter(..., use_safetensors=True)` writes `adapter_config.json`, `adapter.safetensors`,
`head_config.json` and `model_head.safetensors`.
"""

import os
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.base.tensors import read_tensors
from adapter_bert_tf.errors import Damaged, NotFound, Unsupported
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import schema
from adapter_bert_tf.store.weights import DTYPES, MAX_FILE_BYTES, check_finite

CONFIG, WEIGHTS = "adapter_config.json", "adapter.safetensors"
HEAD_CONFIG, HEAD_WEIGHTS = "head_config.json", "model_head.safetensors"
# The library's names of the places of adapters and of their weights.
MODULE_PATHS = {"attention": "attention.output", "feed_forward": "output"}
WEIGHT_NAMES = {
    "down_kernel": "adapter_down.0.weight",
    "down_bias": "adapter_down.0.bias",
    "up_kernel": "adapter_up.weight",
    "up_bias": "adapter_up.bias",
}
BERT = "bert."  # Begins the names of weights, except of those saved from a bare `BertModel`.


def variable_names(
    adapter: AdapterConfig, num_layers: int, name: str, prefix: str = BERT
) -> dict[str, str]:
    """Returns a dict from common name to the library's name, for an adapter's variables."""
    return {
        f"adapters/layer_{i}/{sublayer}/{weight}": (
            f"{module_path(i, sublayer, name, prefix)}.{hub_weight}"
        )
        for i in adapter.layer_indices(num_layers)
        for sublayer in adapter.sublayers
        for weight, hub_weight in WEIGHT_NAMES.items()
    }


def module_path(layer: int, sublayer: str, name: str, prefix: str = BERT) -> str:
    """The library's path of an adapter after a sublayer."""
    return f"{prefix}encoder.layer.{layer}.{MODULE_PATHS[sublayer]}.adapters.{name}"


def require(condition: Any, message: str, received: Any, *arguments: str) -> None:
    """Raises `Unsupported` unless a condition holds; `arguments` as in `InputError`."""
    if not condition:
        raise Unsupported(f"AdapterHub: {message}. Received: {preview(received)}", *arguments)


def require_sound(condition: Any, message: str, received: Any) -> None:
    """Raises `Damaged` unless a condition holds that is true for all files of the library."""
    if not condition:
        raise Damaged(f"AdapterHub: {message}. Received: {preview(received)}")


def pop_weight(tensors: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Removes a weight and returns it as float32, a kernel as `[in, out]`; PyTorch's are reversed.

    A bias is its own transpose.
    """
    require_sound(name in tensors, "a weight is missing", name)
    return np.ascontiguousarray(tensors.pop(name).astype(np.float32).T)


def read_object(folder: str, name: str) -> dict[str, Any]:
    """Reads one of the JSON files. Raises `InputError`."""
    path = _path(folder, name)
    values: dict[str, Any] = storage.read_json_object(path, schema.LARGEST_CONFIG, distinct=True)
    return values


def read_weights(folder: str, name: str) -> dict[str, np.ndarray]:
    """Reads one of the weights' files. Raises `InputError`."""
    path = _path(folder, name)
    require_sound(storage.stat(path).length <= MAX_FILE_BYTES, "a file is too large", path)
    tensors: dict[str, np.ndarray] = read_tensors(path)
    dtypes = {str(array.dtype) for array in tensors.values()}
    require(dtypes <= set(DTYPES), f"weights must be of {list(DTYPES)}", sorted(dtypes))
    check_finite(tensors, f"in {path}")
    return tensors


def _path(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    if not storage.exists(path):
        raise NotFound(
            f"{path} does not exist. The folder has {sorted(storage.listdir(folder))[:10]}; a "
            "`.bin` is a pickle, which is never read. Save the adapter again, with its head: "
            "model.save_adapter(folder, name, use_safetensors=True)."
        )
    return path
