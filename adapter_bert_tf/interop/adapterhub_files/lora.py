"""LoRA and (IA)^3 in the options and weights of AdapterHub's library, in both directions.

The library has one architecture for both: products that are added, or vectors that multiply.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.errors import Unsupported
from adapter_bert_tf.interop.adapterhub_files import layout
from adapter_bert_tf.interop.adapterhub_files.layout import require, require_sound

Weights = dict[str, np.ndarray]
# The library's paths of the projections of a layer, and the option that adds each.
MODULES = {
    "query": ("attention.self.query", "q"),
    "key": ("attention.self.key", "k"),
    "value": ("attention.self.value", "v"),
    "intermediate": ("intermediate.dense", "intermediate_lora"),
    "output": ("output.dense", "output_lora"),
}
# Supported values of the library's options.
REQUIRED_OPTIONS = {"use_dora": False, "vera_d": None, "vera_b": None}
# Versions that trained without the factor of alpha (adapters#770); 1.1.0 was the first with it.
WITHOUT_ALPHA = re.compile(r"adapters\.(0\.|1\.0\.|1\.1\.0\.?dev).*")


def read_lora(
    hub: Mapping[str, Any], version: str | None, tensors: Weights, name: str, depth: int
) -> tuple[LoraConfig | Ia3Config, Weights]:
    """Reads the configuration and the weights, by common name. Raises `InputError`.

    Files of a version that trained without the factor of alpha are read without it, in unions too.
    """
    invalid = {k: hub[k] for k, value in REQUIRED_OPTIONS.items() if hub.get(k, value) != value}
    require(not invalid, "these options of LoRA are not supported", invalid)
    layers = layout.layers_of(hub, depth)
    projections = _projections(hub)
    require(projections, f"LoRA must change some of {list(MODULES)}", hub.get("attn_matrices"))
    mode = hub.get("composition_mode", "add")
    require(mode in ("add", "scale"), "composition_mode must be add or scale", mode)
    is_scale, is_gated = mode == "scale", bool(hub.get("use_gating"))
    require(not (is_scale and is_gated), "(IA)^3 with gates is not supported", hub)
    usual = 1 if is_scale else 8
    # A gate replaces alpha / r.
    is_plain = is_gated or WITHOUT_ALPHA.fullmatch(version or "")
    alpha = hub.get("r" if is_plain else "alpha", usual)
    is_number = isinstance(alpha, int | float) and np.isfinite(alpha)
    require_sound(is_number, "alpha must be a number", alpha)
    prefix = layout.bert_prefix(tensors)
    kept = None if len(layers) == depth else layers
    weights: Weights = {}
    for layer in layers:
        for projection in projections:
            path, own = module_path(layer, projection, name, prefix), _own(layer, projection)
            up = layout.pop_weight(tensors, f"{path}.lora_B")
            if is_scale:
                scale = up.reshape(-1) * np.float32(alpha)
                weights[f"{own}/scale"] = scale
            else:
                weights[f"{own}/lora_a"] = layout.pop_weight(tensors, f"{path}.lora_A")
                weights[f"{own}/lora_b"] = up
    if is_scale:
        return Ia3Config(projections, layers=kept), weights
    config = LoraConfig(
        rank=hub.get("r", usual),
        alpha=alpha,
        dropout=hub.get("dropout") or 0.0,
        projections=projections,
        layers=kept,
    )
    return config, weights


def _projections(hub: Mapping[str, Any]) -> tuple[str, ...]:
    matrices: Any = hub.get("attn_matrices", ["q", "v"]) if hub.get("selfattn_lora", True) else []
    require_sound(isinstance(matrices, list), "attn_matrices must be a list", matrices)
    chosen = set(map(str, matrices)) | {n for n, value in hub.items() if value is True}
    return tuple(name for name, (_, option) in MODULES.items() if option in chosen)


def module_path(layer: int, projection: str, name: str, prefix: str = layout.BERT) -> str:
    """The library's path of the change of a projection."""
    return f"{prefix}encoder.layer.{layer}.{MODULES[projection][0]}.loras.{name}"


def _own(layer: int, projection: str) -> str:
    return f"adapters/layer_{layer}/{projection}"


def write_lora(
    adapter: LoraConfig | Ia3Config, weights: Mapping[str, np.ndarray], depth: int, name: str
) -> tuple[dict[str, Any], Weights]:
    """The library's options and weights. Raises `InputError` for what its format cannot say."""
    unknown = [projection for projection in adapter.projections if projection not in MODULES]
    message = f"only {list(MODULES)} can be exported; PEFT's files hold the others"
    require(not unknown, message, unknown)
    layers = adapter.layer_indices(depth)
    options: dict[str, Any] = REQUIRED_OPTIONS | {
        "architecture": "lora",
        "selfattn_lora": any(len(MODULES[p][1]) == 1 for p in adapter.projections),
        "attn_matrices": [MODULES[p][1] for p in adapter.projections if len(MODULES[p][1]) == 1],
        "intermediate_lora": "intermediate" in adapter.projections,
        "output_lora": "output" in adapter.projections,
        "leave_out": layout.left_out(layers, depth),
        "use_gating": False,
        "dtype": None,
    }
    places = [(layer, projection) for layer in layers for projection in adapter.projections]
    if isinstance(adapter, Ia3Config):
        tensors = {
            f"{module_path(*place, name)}.lora_B": weights[f"{_own(*place)}/scale"][:, np.newaxis]
            for place in places
        }
        return options | {
            "composition_mode": "scale",
            "init_weights": "ia3",
            "r": 1,
            "alpha": 1,
            "dropout": 0.0,
        }, tensors
    factors = {adapter.factor_of(*place) for place in places}
    is_same = len(factors) == 1 and not adapter.ranks
    message = "all places must have one rank and alpha; PEFT's files hold others"
    require(is_same, message, adapter.to_dict())
    tensors = {
        f"{module_path(*place, name)}.{hub}": weights[
            f"adapters/layer_{place[0]}/{place[1]}/{own}"
        ].T
        for place in places
        for own, hub in (("lora_a", "lora_A"), ("lora_b", "lora_B"))
    }
    return options | {
        "composition_mode": "add",
        "init_weights": "lora",
        "r": adapter.rank,
        "alpha": factors.pop() * adapter.rank,
        "dropout": float(adapter.dropout),
    }, tensors


def without_factor(
    adapter: LoraConfig | Ia3Config, weights: Mapping[str, np.ndarray]
) -> tuple[LoraConfig, Mapping[str, np.ndarray]]:
    """The same function with `alpha / rank` of 1, which a gate of the library takes the place of.

    Raises `InputError` for (IA)^3, whose gates there multiply vectors instead of changes.
    """
    if isinstance(adapter, Ia3Config):
        raise Unsupported("AdapterHub: (IA)^3 with gates cannot be exported.")
    scaled = dict(weights)
    for name in (name for name in weights if name.endswith("/lora_b")):
        _, layer, projection, _ = name.split("/")
        factor = adapter.factor_of(int(layer.removeprefix("layer_")), projection)
        scaled[name] = weights[name] * np.float32(factor)
    plain = dataclasses.replace(adapter, alpha=adapter.rank, alphas=(), rank_stabilized=False)
    return plain, scaled
