"""Prefix tuning in the options and weights of AdapterHub's library, in both directions.

The library has one module for all layers, and names it in each. Safetensors does not write such
copies; a file has one of them, or clones of all.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.methods.prefix import NAMES, PrefixConfig
from adapter_bert_tf.interop.adapterhub_files import layout
from adapter_bert_tf.interop.adapterhub_files.layout import require, require_sound

Weights = dict[str, np.ndarray]
IN_A_LAYER = re.compile(r"(bert\.)?encoder\.layer\.\d+\.attention\.self\.prefix_tuning\.pool\.")
FLAT = "control_trans"  # The one weight of a prefix without a network, or ejected from it.
NETWORK = (
    "wte.weight",
    "control_trans.0.weight",
    "control_trans.0.bias",
    "control_trans.2.weight",
    "control_trans.2.bias",
)


def read_prefix(
    hub: Mapping[str, Any], tensors: Weights, name: str, depth: int
) -> tuple[PrefixConfig, Weights]:
    """Reads the configuration and the weights, by common name. Raises `InputError`.

    A network becomes the keys and values that it computes, as in adapter directories.
    """
    require(hub.get("shared_gating", True) is True, "shared_gating must be true", hub)
    layers, parts = layout.layers_of(hub, depth), _pop_copies(tensors, name)
    if parts.keys() != {FLAT}:
        message = f"the weights of a prefix must be {FLAT}, or {NETWORK}"
        require_sound(parts.keys() == set(NETWORK), message, sorted(parts))
        activation = str(hub.get("non_linearity", "tanh")).lower()
        require(activation == "tanh", "non_linearity of a prefix must be tanh", activation)
        table, down, down_bias, up, up_bias = (parts[part].astype(np.float64) for part in NETWORK)
        shapes = [parts[part].shape for part in NETWORK]
        require_sound(_fit(*shapes), "the weights of the prefix must fit", shapes)
        parts[FLAT] = np.tanh(table @ down.T + down_bias) @ up.T + up_bias
    length, flat = hub.get("prefix_length", 30), parts[FLAT]
    config = PrefixConfig(
        length,
        reparametrized=False,
        dropout=hub.get("dropout", 0.0),
        layers=None if len(layers) == depth else layers,
    )
    known = flat.size > 0 and flat.size % (length * len(layers) * len(NAMES)) == 0
    message = f"a prefix must have values for {length} positions in {len(layers)} layers"
    require_sound(known, message, flat.shape)
    by_layer = flat.astype(np.float32).reshape(length, len(layers), len(NAMES), -1)
    return config, {
        f"adapters/layer_{layer}/{kind}/prefix": np.ascontiguousarray(by_layer[:, i, j])
        for i, layer in enumerate(layers)
        for j, kind in enumerate(NAMES)
    }


def _fit(table: Any, down: Any, down_bias: Any, up: Any, up_bias: Any) -> bool:
    """Whether the shapes of `NETWORK` belong together."""
    kernels = len(table) == len(down) == len(up) == 2
    return kernels and (down[1], *down_bias, *up_bias) == (table[1], down[0], up[0])


def _pop_copies(tensors: Weights, name: str) -> Weights:
    """Removes all copies of the module; returns its weights by the last part of their names."""
    marker, parts = f"prefix_tunings.{name}.self_prefix.", Weights()
    for key in [key for key in tensors if marker in key]:
        path, _, part = key.partition(marker)
        if path in ("prefix_tuning.", "bert.prefix_tuning.") or IN_A_LAYER.fullmatch(path):
            value = tensors.pop(key)
            same = part not in parts or np.array_equal(parts[part], value)
            require_sound(same, "the copies of a prefix must be equal", key)
            parts[part] = value
    require_sound(parts, "the weights of the prefix are missing", sorted(tensors)[:5])
    return parts


def write_prefix(
    adapter: PrefixConfig, weights: Mapping[str, np.ndarray], depth: int, name: str
) -> tuple[dict[str, Any], Weights]:
    """The library's options and weights; the weights are those of a flat prefix."""
    layers = adapter.layer_indices(depth)
    by_layer = [[weights[f"adapters/layer_{i}/{kind}/prefix"] for kind in NAMES] for i in layers]
    flat = np.transpose(np.asarray(by_layer, np.float32), (2, 0, 1, 3)).reshape(-1)
    options = {
        "architecture": "prefix_tuning",
        "encoder_prefix": True,
        "cross_prefix": True,
        "flat": True,
        "prefix_length": adapter.length,
        "bottleneck_size": adapter.inner_size,
        "non_linearity": "tanh",
        "dropout": float(adapter.dropout),
        "leave_out": layout.left_out(layers, depth),
        "use_gating": False,
        "shared_gating": True,
        "init_weights_seed": None,
    }
    path = f"{layout.BERT}prefix_tuning.prefix_tunings.{name}.self_prefix"
    return options, {f"{path}.{FLAT}": flat}


def gate_path(layer: int, place: str, name: str, prefix: str) -> str:
    """The library's path of the gate of a layer's prefix."""
    return f"{prefix}encoder.layer.{layer}.attention.self.prefix_tuning.prefix_gates.{name}"
