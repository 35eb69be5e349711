"""File names and variable names of AdapterHub's library `adapters` (1.3), and reading its files.

`save_adapter(..., use_safetensors=True)` writes `adapter_config.json`, `adapter.safetensors`,
`head_config.json` and `model_head.safetensors`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.interop.foreign_files import Library, float32

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
LIBRARY = Library(
    "AdapterHub",
    "Save the adapter again, with its head: "
    "model.save_adapter(folder, name, use_safetensors=True). Prefixes and unions with them need "
    "the conversion in docs/from_adapterhub.md.",
)
require, require_sound = LIBRARY.require, LIBRARY.require_sound
read_object, read_weights = LIBRARY.read_object, LIBRARY.read_weights
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


def bert_prefix(tensors: Mapping[str, np.ndarray]) -> str:
    """How the names of weights begin: `BERT`, or nothing."""
    return BERT if any(name.startswith(BERT) for name in tensors) else ""


def layers_of(hub: Mapping[str, Any], depth: int) -> tuple[int, ...]:
    """The layers that the library's options do not leave out. Raises `InputError`."""
    skipped: Any = [] if hub.get("leave_out") is None else hub["leave_out"]
    require_sound(isinstance(skipped, list), "leave_out must be a list of layers", skipped)
    return tuple(i for i in range(depth) if i not in skipped)


def left_out(layers: tuple[int, ...], depth: int) -> list[int]:
    """The library's option of layers that are left out."""
    return [i for i in range(depth) if i not in layers]


def pop_weight(tensors: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Removes a weight and returns it as float32, a kernel as `[in, out]`; PyTorch's are reversed.

    A bias is its own transpose.
    """
    require_sound(name in tensors, "a weight is missing", name)
    return float32(tensors.pop(name))
