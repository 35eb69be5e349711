"""Compacter in the options and weights of AdapterHub's library, in both directions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.methods.compacter import RULE, CompacterConfig
from adapter_bert_tf.interop.adapterhub_files import bottleneck, layout
from adapter_bert_tf.interop.adapterhub_files.layout import module_path, require, require_sound

Weights = dict[str, np.ndarray]
# The library's options of kernels that are sums of Kronecker products; supported values.
REQUIRED_OPTIONS = {
    "phm_layer": True,
    "factorized_phm_W": True,
    "shared_W_phm": False,
    "shared_phm_rule": True,
    "factorized_phm_rule": False,
    "phm_bias": True,
    "is_parallel": False,
    "scaling": 1.0,
}
OTHER_OPTIONS = {
    "learn_phm": True,
    "phm_c_init": "normal",
    "phm_init_range": 1e-4,
    "hypercomplex_nonlinearity": "glorot-uniform",
}
WEIGHTS = {
    "down_left": "adapter_down.0.W_left",
    "down_right": "adapter_down.0.W_right",
    "down_bias": "adapter_down.0.b",
    "up_left": "adapter_up.W_left",
    "up_right": "adapter_up.W_right",
    "up_bias": "adapter_up.b",
}


def read_compacter(
    hub: Mapping[str, Any], tensors: Weights, name: str, depth: int
) -> tuple[CompacterConfig, Weights]:
    """Reads the configuration and the weights, by common name. Raises `InputError`."""
    invalid = {k: hub.get(k) for k, value in REQUIRED_OPTIONS.items() if hub.get(k, value) != value}
    require(not invalid, f"these options of Compacter must be {REQUIRED_OPTIONS}", invalid)
    rest = {k: v for k, v in hub.items() if k not in REQUIRED_OPTIONS}
    options = bottleneck.common_options(rest, version="", depth=depth)
    prefix = layout.bert_prefix(tensors)
    layers = range(depth) if options["layers"] is None else options["layers"]
    weights: Weights = {RULE: _pop(tensors, f"{prefix}shared_parameters.{name}.phm_rule", 3)}
    for layer in layers:
        for sublayer in options["sublayers"]:
            path = module_path(layer, sublayer, name, prefix)
            for own, theirs in WEIGHTS.items():
                rank = 1 if own.endswith("bias") else 3
                weight = _pop(tensors, f"{path}.{theirs}", rank)
                weights[f"adapters/layer_{layer}/{sublayer}/{own}"] = weight
    first = next((w for own, w in weights.items() if own.endswith("down_bias")), np.zeros(0))
    left = next((w for own, w in weights.items() if own.endswith("down_left")), np.zeros((0, 0, 1)))
    config = CompacterConfig(
        bottleneck_size=first.size, n=weights[RULE].shape[0], rank=left.shape[2], **options
    )
    return config, weights


def _pop(tensors: Weights, name: str, rank: int) -> np.ndarray:
    require_sound(name in tensors, "a weight is missing", name)
    require_sound(tensors[name].ndim == rank, f"{name} must have {rank} axes", tensors[name].shape)
    return np.ascontiguousarray(tensors.pop(name).astype(np.float32))


def write_compacter(
    adapter: CompacterConfig, weights: Mapping[str, np.ndarray], sizes: Any, name: str
) -> tuple[dict[str, Any], Weights]:
    """The library's options and weights. Raises `InputError` for an unsupported activation."""
    options = bottleneck.hub_options(adapter.bottleneck(), sizes) | REQUIRED_OPTIONS
    options |= OTHER_OPTIONS | {"phm_dim": adapter.n, "phm_rank": adapter.rank}
    tensors = {f"{layout.BERT}shared_parameters.{name}.phm_rule": weights[RULE]}
    for layer in adapter.layer_indices(sizes.num_layers):
        for sublayer in adapter.sublayers:
            path = module_path(layer, sublayer, name)
            for own, theirs in WEIGHTS.items():
                tensors[f"{path}.{theirs}"] = weights[f"adapters/layer_{layer}/{sublayer}/{own}"]
    return options, tensors
