"""Invertible adapters at the embeddings in the options and weights of AdapterHub's library."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.adapters import fields
from adapter_bert_tf.adapters.languages.invertible import PLACE, InvertibleConfig
from adapter_bert_tf.interop.adapterhub_files import layout
from adapter_bert_tf.interop.adapterhub_files.layout import require

OPTION, FACTOR = "inv_adapter", "inv_adapter_reduction_factor"
KIND = "nice"  # The other one, GLOW, has a reversible 1 x 1 convolution.
PARTS = {"down": "0", "up": "2"}  # Numbers of the dense layers, around an activation.
VARIABLES = {"kernel": "weight", "bias": "bias"}


def read_invertible(
    hub: Mapping[str, Any], tensors: dict[str, np.ndarray], name: str, activation: str
) -> tuple[InvertibleConfig, dict[str, np.ndarray]] | None:
    """Reads the configuration and weights of an adapter's invertible part; None if it has none.

    Its `activation` is that of the adapter. Raises `InputError` for another kind of it.
    """
    option, factor = hub.get(OPTION), hub.get(FACTOR)
    if option is None:
        return None
    require(option == KIND, f"{OPTION} must be {KIND!r} or null", option)
    whole = fields.is_number(factor) and float(factor or 0).is_integer()
    require(whole, f"{FACTOR} must be a whole number", factor)
    # Initial values are not in the files; the library draws all kernels.
    config = InvertibleConfig(int(factor or 0), activation, identity_init=False)
    beginning = layout.bert_prefix(tensors)
    weights = {
        own: layout.pop_weight(tensors, beginning + path) for own, path in _paths(name).items()
    }
    return config, weights


def write_invertible(
    config: InvertibleConfig, weights: Mapping[str, np.ndarray], name: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The library's options and weights of an invertible part."""
    tensors = {layout.BERT + path: weights[own].T for own, path in _paths(name).items()}
    return {OPTION: KIND, FACTOR: config.reduction}, tensors


def _paths(name: str) -> dict[str, str]:
    """Dict from common name to the library's name of each variable."""
    return {
        f"{PLACE}/{half}/{part}_{variable}": (
            f"invertible_adapters.{name}.{half}.{number}.{theirs}"
        )
        for half in ("F", "G")
        for part, number in PARTS.items()
        for variable, theirs in VARIABLES.items()
    }
