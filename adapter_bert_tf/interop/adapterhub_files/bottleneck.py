"""Bottleneck adapters in the options and weights of AdapterHub's library, in both directions."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.base.config import HUGGING_FACE_ACTIVATIONS, BertConfig
from adapter_bert_tf.interop.adapterhub_files import layout
from adapter_bert_tf.interop.adapterhub_files.layout import module_path, require, require_sound

# Names of transformers, which the library lower-cases; the first of each function is written.
ACTIVATIONS = HUGGING_FACE_ACTIVATIONS | {
    "tanh": "tanh",
    "linear": "linear",
    "gelu_python": "gelu_erf",
    "gelu_fast": "gelu",
    "gelu_accurate": "gelu",
}
# What the library reads in files without a version, which its predecessors wrote; exact spelling.
UNVERSIONED_ACTIVATIONS = {"gelu": "gelu_new", "gelu_orig": "gelu"}
# Supported values of the library's options.
REQUIRED_OPTIONS = {
    "ln_before": False,
    "ln_after": False,
    "phm_layer": False,
    "adapter_residual_before_ln": False,
    "original_ln_after": True,
    "residual_before_ln": True,
    "stochastic_depth": 0.0,
}
BOOLEAN_OPTIONS = (
    "mh_adapter",
    "output_adapter",
    "is_parallel",
    "original_ln_before",
    "use_gating",
)
SUBLAYERS = {"attention": "mh_adapter", "feed_forward": "output_adapter"}
LEARNED_SCALES = ("learned", "channel")  # One number, or one for each position of the output.


def read_bottleneck(
    hub: Mapping[str, Any],
    version: str | None,
    tensors: dict[str, np.ndarray],
    name: str,
    depth: int,
) -> tuple[AdapterConfig, dict[str, np.ndarray]]:
    """Reads the configuration and the weights, by common name, of an adapter in `depth` layers.

    `hub` are the library's options, `tensors` all of its weights. Learned scales become part of the
    up projections. Raises `InputError` for an unsupported option or weight.
    """
    options = common_options(hub, version, depth)
    scale = hub.get("scaling", 1.0)
    is_learned = scale in LEARNED_SCALES
    require(
        is_learned or not isinstance(scale, str),
        f"scaling must be a number or one of {LEARNED_SCALES}",
        scale,
    )
    layers = range(depth) if options["layers"] is None else options["layers"]
    prefix = layout.bert_prefix(tensors)
    sizes = _sizes(tensors, layers, options["sublayers"], name, prefix)
    usual = collections.Counter(sizes.values()).most_common(1)[0][0] if sizes else 0
    is_parallel = hub.get("is_parallel", False)
    adapter = AdapterConfig.from_dict(
        options
        | {
            "bottleneck_size": usual,
            "scale": 1.0 if is_learned else scale,
            "placement": "parallel" if is_parallel else "serial",
            "normalize_input": options["normalize_input"] and not is_parallel,
            "layer_sizes": sizes,
        }
    )
    names = layout.variable_names(adapter, depth, name, prefix)
    weights = {own: layout.pop_weight(tensors, hub_name) for own, hub_name in names.items()}
    if is_learned:
        _fold_scales(weights, tensors, adapter, depth, name, prefix)
    return adapter, weights


def common_options(hub: Mapping[str, Any], version: str | None, depth: int) -> dict[str, Any]:
    """What all adapters between two kernels have, as fields of their configurations.

    `version` is that of the library, None in files without one. Raises `InputError`.
    """
    renamed = UNVERSIONED_ACTIVATIONS if version is None else {}
    activation = str(hub.get("non_linearity"))
    activation = renamed.get(activation, activation).lower()
    _check_options(hub)
    require(
        activation in ACTIVATIONS,
        f"non_linearity must be one of {list(ACTIVATIONS)}",
        hub.get("non_linearity"),
    )
    layers = layout.layers_of(hub, depth)
    return {
        "activation": ACTIVATIONS[activation],
        "dropout": hub.get("dropout", 0.0),
        "sublayers": tuple(sublayer for sublayer, option in SUBLAYERS.items() if hub.get(option)),
        "layers": layers if hub.get("leave_out") else None,
        "normalize_input": hub.get("original_ln_before", False),
    }


def _check_options(hub: Mapping[str, Any]) -> None:
    """Raises `InputError` for values that another computation follows from."""
    without_effect = set()
    if hub.get("is_parallel") is True:
        without_effect = {"residual_before_ln", "adapter_residual_before_ln"}
    elif hub.get("original_ln_before", False) is False and hub.get("residual_before_ln") is False:
        without_effect = {"residual_before_ln"}
    if hub.get("ln_after", False) is False:
        without_effect |= {"adapter_residual_before_ln"}
    required = {k: value for k, value in REQUIRED_OPTIONS.items() if k not in without_effect}
    invalid = {key: hub[key] for key, value in required.items() if hub.get(key, value) != value}
    invalid |= {k: hub[k] for k in BOOLEAN_OPTIONS if not isinstance(hub.get(k, False), bool)}
    allowed = {key: required.get(key, "true or false") for key in invalid}
    require(not invalid, f"these options must be {allowed}", invalid)


def _sizes(
    tensors: Mapping[str, np.ndarray],
    layers: Iterable[int],
    sublayers: Sequence[str],
    name: str,
    prefix: str,
) -> dict[int, int]:
    """The bottleneck size of each layer, from the shapes of its biases."""
    down_bias = layout.WEIGHT_NAMES["down_bias"]
    found: dict[int, set[int]] = {}
    for layer in layers:
        for sublayer in sublayers:
            path = f"{module_path(layer, sublayer, name, prefix)}.{down_bias}"
            require_sound(path in tensors, "a weight is missing", path)
            found.setdefault(layer, set()).add(tensors[path].size if tensors[path].ndim == 1 else 0)
    different = {layer: sorted(sizes) for layer, sizes in found.items() if len(sizes) > 1}
    require(not different, "the adapters of a layer must have one bottleneck size", different)
    return {layer: sizes.pop() for layer, sizes in found.items()}


def _fold_scales(
    weights: dict[str, np.ndarray],
    tensors: dict[str, np.ndarray],
    adapter: AdapterConfig,
    depth: int,
    name: str,
    prefix: str,
) -> None:
    """Multiplies up projections by the learned scales of their outputs."""
    for layer in adapter.layer_indices(depth):
        for sublayer in adapter.sublayers:
            path = f"{module_path(layer, sublayer, name, prefix)}.scaling"
            scales, own = layout.pop_weight(tensors, path), f"adapters/layer_{layer}/{sublayer}"
            bias = weights[f"{own}/up_bias"]
            shapes = ((1,), bias.shape)
            require_sound(scales.shape in shapes, f"{path} must be of {shapes}", scales.shape)
            weights[f"{own}/up_kernel"] = weights[f"{own}/up_kernel"] * scales
            weights[f"{own}/up_bias"] = bias * scales


def write_bottleneck(
    adapter: AdapterConfig, weights: Mapping[str, np.ndarray], sizes: BertConfig, name: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The library's options and weights. Raises `InputError` for what its format cannot say."""
    plain = dataclasses.replace(adapter, depth=1, layer_norm=False, normalize_output=False)
    require(adapter == plain, "only plain bottleneck adapters can be exported", adapter.summary())
    names = layout.variable_names(adapter, sizes.num_layers, name)
    return hub_options(adapter, sizes), {hub: weights[own].T for own, hub in names.items()}


def hub_options(adapter: AdapterConfig, sizes: BertConfig) -> dict[str, Any]:
    """The library's options of an adapter. Raises `InputError` for an unsupported activation."""
    names = {own_name: hub_name for hub_name, own_name in reversed(ACTIVATIONS.items())}
    require(adapter.activation in names, "the activation is not supported", adapter.activation)
    layers = adapter.layer_indices(sizes.num_layers)
    factor: Any = reduction_factor(sizes.hidden_size, adapter.bottleneck_size)
    if adapter.layer_sizes:
        by_layer = {str(i): adapter.size_of(i) for i in layers}
        factor = {i: reduction_factor(sizes.hidden_size, size) for i, size in by_layer.items()}
    return REQUIRED_OPTIONS | {
        "mh_adapter": "attention" in adapter.sublayers,
        "output_adapter": "feed_forward" in adapter.sublayers,
        "non_linearity": names[adapter.activation],
        "dropout": float(adapter.dropout),
        "reduction_factor": factor,
        "original_ln_before": adapter.normalize_input,
        "scaling": float(adapter.scale),
        "is_parallel": adapter.placement == "parallel",
        "init_weights": "bert",
        "cross_adapter": False,
        "leave_out": layout.left_out(layers, sizes.num_layers),
        "use_gating": False,
        "inv_adapter": None,
    }


def reduction_factor(hidden_size: int, bottleneck_size: int) -> float:
    """A factor from which the library computes the size, as `int(hidden_size // factor)`.

    The exact quotient is often rounded up, which makes the size one too small: 59 of 60 in 768.
    """
    if hidden_size % bottleneck_size == 0:
        return hidden_size / bottleneck_size
    return hidden_size / (bottleneck_size + 0.5)
