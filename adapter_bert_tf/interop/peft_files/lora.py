"""LoRA in the options and weights of PEFT, in both directions."""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.variable_specs import POOLER
from adapter_bert_tf.base import Base
from adapter_bert_tf.interop.foreign_files import float32
from adapter_bert_tf.interop.peft_files.layout import (
    COMMON_OPTIONS,
    MODULES,
    POOLER_PATH,
    WRAPPED,
    Place,
    pop_places,
    require,
    require_plain,
    require_sound,
    targets,
)

Weights = dict[str, np.ndarray]
WEIGHTS = {"lora_A.weight": "lora_a", "lora_B.weight": "lora_b"}
OPTIONS = COMMON_OPTIONS | {
    *("alpha_pattern", "corda_config", "ensure_weight_tying", "eva_config", "init_lora_weights"),
    *("layers_pattern", "layers_to_transform", "lora_alpha", "lora_dropout", "lora_ga_config"),
    *("megatron_core", "qalora_group_size", "r", "rank_pattern", "runtime_config", "use_rslora"),
}
# Initial values that leave the base as it is; others subtract the first product from it.
PLAIN_STARTS = (True, False, None, "eva", "orthogonal")
PLAIN_STARTS_IN_ANY_CASE = ("gaussian", "mica")
# A pattern of modules as people write them: names, dots, and the number of a layer.
PATTERN = re.compile(r"\^?(?:[A-Za-z0-9_]|\\?\.|\\d\+?)+\$?")


def read_lora(
    options: Mapping[str, Any], tensors: Weights, base: Base
) -> tuple[LoraConfig, Weights]:
    """Reads and removes the weights of LoRA in the base's layers, and in its pooler.

    Raises `InputError`.
    """
    start = options.get("init_lora_weights", True)
    is_plain = any(start is known or start == known for known in PLAIN_STARTS)
    require(
        is_plain or str(start).lower() in PLAIN_STARTS_IN_ANY_CASE,
        "init_lora_weights has changed the base, so save the adapter with "
        "path_initial_model_for_weight_conversion, and its head as docs/from_peft.md does",
        start,
    )
    require_plain(options, OPTIONS, "LoRA")
    weights, depth = _pop_pooler(options, tensors, base), base.config.num_layers
    ranks: dict[tuple[int, str], int] = {}
    alphas: dict[tuple[int, str], float] = {}
    for place, array in pop_places(options, tensors, WEIGHTS, depth).items():
        weights[f"{place.own_path}/{WEIGHTS[place.weight]}"] = float32(array)
        if WEIGHTS[place.weight] == "lora_a":
            ranks[place.layer, place.projection] = array.shape[0]
            alphas[place.layer, place.projection] = _alpha(options, place.peft_path)
    require_sound(ranks, "there is no LoRA on a projection of the encoder", list(tensors)[:3])
    layers = sorted({layer for layer, _ in ranks})
    projections = [name for name in MODULES if any(name == own for _, own in ranks)]
    gaps = {(layer, name) for layer in layers for name in projections} - set(ranks)
    require(not gaps, "all layers must have the same projections", sorted(gaps)[:3])
    config = LoraConfig(
        rank=_usual(ranks.values(), options.get("r")),
        alpha=_usual(alphas.values(), options.get("lora_alpha", 8)),
        dropout=options.get("lora_dropout") or 0.0,
        projections=tuple(projections),
        rank_stabilized=bool(options.get("use_rslora")),
        layers=None if layers == list(range(depth)) else tuple(layers),
        ranks={f"layer_{i}/{name}": value for (i, name), value in ranks.items()},
        alphas={f"layer_{i}/{name}": value for (i, name), value in alphas.items()},
    )
    return config, weights


def _usual(values: Collection[Any], stated: Any) -> Any:
    """What a file states, if it holds anywhere, or else the most frequent value."""
    return stated if stated in values else Counter(values).most_common(1)[0][0]


def _pop_pooler(options: Mapping[str, Any], tensors: Weights, base: Base) -> Weights:
    """Removes LoRA of the pooler and returns the pooler that it makes of the base's; or nothing."""
    names = [f"{WRAPPED}{POOLER_PATH}.{weight}" for weight in WEIGHTS]
    if not any(name in tensors for name in names):
        return {}
    require(base.has_pooler, "LoRA of the pooler needs a base with a pooler", base.origin)
    given = [float32(tensors.pop(name)) for name in names if name in tensors]
    hidden, shapes = base.config.hidden_size, [array.shape for array in given]
    rank = shapes[0][-1] if shapes[0] else 0
    fits = shapes == [(hidden, rank), (rank, hidden)]
    require_sound(fits, f"{POOLER_PATH} must have two matrices that fit the base", shapes)
    # The factor is the same in all places.
    stabilized = bool(options.get("use_rslora"))
    of_pooler = LoraConfig(rank, _alpha(options, POOLER_PATH), rank_stabilized=stabilized)
    change = of_pooler.factor_of(0, "query") * (given[0] @ given[1])
    kernel, bias = (base.weights[f"{POOLER}/{part}"] for part in ("kernel", "bias"))
    return {f"{POOLER}/kernel": (kernel + change).astype(np.float32), f"{POOLER}/bias": bias}


def _alpha(options: Mapping[str, Any], path: str) -> float:
    """The alpha of a module: that of the first pattern that ends its name."""
    patterns: Any = options.get("alpha_pattern") or {}
    require_sound(isinstance(patterns, dict), "alpha_pattern must be an object", patterns)
    for pattern, alpha in patterns.items():
        is_plain = PATTERN.fullmatch(pattern) is not None
        require(is_plain, "alpha_pattern must be of names, dots and \\d+", pattern)
        if re.match(rf"(.*\.)?({pattern})$", path):
            return _number(alpha)
    return _number(options.get("lora_alpha", 8))


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    require_sound(is_number and math.isfinite(value), "alpha must be a number", value)
    return float(value)


def write_lora(
    config: LoraConfig, weights: Mapping[str, np.ndarray], depth: int
) -> tuple[dict[str, Any], Weights]:
    """The library's options and weights, by its names."""
    places = [
        Place(layer, projection, name)
        for layer in config.layer_indices(depth)
        for projection in config.projections
        for name in WEIGHTS
    ]
    options = {
        "peft_type": "LORA",
        "r": config.rank,
        "lora_alpha": config.alpha,
        "lora_dropout": config.dropout,
        "use_rslora": config.rank_stabilized,
        "rank_pattern": {_pattern(place): rank for place, rank in dict(config.ranks).items()},
        "alpha_pattern": {_pattern(place): alpha for place, alpha in dict(config.alphas).items()},
        "init_lora_weights": True,
        "bias": "none",
        "target_modules": targets(places),
    }
    return options, {p.peft_name: weights[f"{p.own_path}/{WEIGHTS[p.weight]}"].T for p in places}


def _pattern(place: str) -> str:
    """The library's pattern of a place such as `layer_3/query`."""
    layer, _, projection = place.partition("/")
    return re.escape(Place(int(layer.removeprefix("layer_")), projection).peft_path)
