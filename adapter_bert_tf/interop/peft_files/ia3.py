"""(IA)^3 in the options and weights of PEFT, in both directions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.base import Base
from adapter_bert_tf.interop.peft_files.layout import (
    COMMON_OPTIONS,
    MODULES,
    Place,
    pop_places,
    require,
    require_plain,
    require_sound,
    targets,
)

Weights = dict[str, np.ndarray]
WEIGHT = "ia3_l"
OPTIONS = COMMON_OPTIONS | {"feedforward_modules", "init_ia3_weights"}
# Where a vector of inputs belongs with us. What attention's output projection reads are means of
# the values, so a vector of either is one of both.
OF_INPUTS = {"attention_output": "value", "output": "activation"}


def read_ia3(options: Mapping[str, Any], tensors: Weights, base: Base) -> tuple[Ia3Config, Weights]:
    """Reads and removes the weights of (IA)^3 in the base's layers. Raises `InputError`."""
    require_plain(options, OPTIONS, "(IA)^3")
    depth = base.config.num_layers
    scales: dict[tuple[int, str], np.ndarray] = {}
    for place, array in pop_places(options, tensors, (WEIGHT,), depth).items():
        projection = place.projection
        if array.shape[0] == 1:  # A vector of inputs is `[1, size]`, one of outputs `[size, 1]`.
            known = projection in OF_INPUTS
            require(known, "the inputs of this module cannot be scaled", MODULES[projection])
            projection = OF_INPUTS[projection]
        scale = array.reshape(-1).astype(np.float32)
        scales[place.layer, projection] = scales.get((place.layer, projection), 1.0) * scale
    require_sound(scales, "there is no (IA)^3 on a projection of the encoder", list(tensors)[:3])
    layers = sorted({layer for layer, _ in scales})
    projections = sorted({projection for _, projection in scales})
    gaps = {(layer, name) for layer in layers for name in projections} - set(scales)
    require(not gaps, "all layers must have the same projections", sorted(gaps)[:3])
    config = Ia3Config(
        tuple(projections), layers=None if layers == list(range(depth)) else tuple(layers)
    )
    return config, {f"adapters/layer_{i}/{name}/scale": v for (i, name), v in scales.items()}


def write_ia3(
    config: Ia3Config, weights: Mapping[str, np.ndarray], depth: int
) -> tuple[dict[str, Any], Weights]:
    """The library's options and weights, by its names."""
    places, tensors, feed_forward = [], dict[str, np.ndarray](), []
    for layer in config.layer_indices(depth):
        for projection in config.projections:
            of_inputs = projection == "activation"
            place = Place(layer, "output" if of_inputs else projection, WEIGHT)
            scale = weights[f"adapters/layer_{layer}/{projection}/scale"]
            tensors[place.peft_name] = scale[np.newaxis] if of_inputs else scale[:, np.newaxis]
            places.append(place)
            feed_forward += [place] if of_inputs else []
    both = {"output", "activation"} <= set(config.projections)
    require(not both, "a module has one vector, for inputs or for outputs", config.projections)
    return {
        "peft_type": "IA3",
        "feedforward_modules": targets(feed_forward),
        "init_ia3_weights": True,
        "target_modules": targets(places),
    }, tensors
