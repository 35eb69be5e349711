"""Heads that predict masked words in the options and weights of AdapterHub's library."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from absl import logging

from adapter_bert_tf.base import Base
from adapter_bert_tf.base.config import HUGGING_FACE_ACTIVATIONS
from adapter_bert_tf.heads.masked_words.scores import (
    BIAS,
    DENSE,
    NORM,
    WORD_EMBEDDINGS,
    masked_word_specs,
)
from adapter_bert_tf.interop.adapterhub_files import layout
from adapter_bert_tf.interop.adapterhub_files.layout import require

HEAD_TYPE = "masked_lm"
OPTIONS = {"layers": 2, "layer_norm": True, "bias": True, "shift_labels": False}


def read_word_head(
    options: Mapping[str, Any], tensors: dict[str, np.ndarray], name: str, base: Base
) -> dict[str, np.ndarray]:
    """Reads the weights of a head, by common name, and removes them from `tensors`.

    The file also holds its decoder, which is tied to the word embeddings. Raises `InputError` for
    one that is not those of the base, and for another computation.
    """
    given = {key: options.get(key, value) for key, value in OPTIONS.items()}
    require(given == OPTIONS, f"options of the head must be {OPTIONS}", given)
    activation = HUGGING_FACE_ACTIVATIONS.get(str(options.get("activation_function")).lower())
    own = base.config.activation
    require(activation == own, f"the head's activation must be the base's, {own}", activation)
    decoder, names = _names(name)
    if decoder in tensors:
        same = np.array_equal(layout.pop_weight(tensors, decoder).T, base.weights[WORD_EMBEDDINGS])
        require(same, "the decoder of masked words must be the base's word embeddings", decoder)
    return {own: layout.pop_weight(tensors, path) for own, path in names.items()}


def write_word_head(base: Base, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The library's options of a head, and a dict from common name to its names."""
    found = (n for n, own in HUGGING_FACE_ACTIVATIONS.items() if own == base.config.activation)
    options = OPTIONS | {
        "head_type": HEAD_TYPE,
        "vocab_size": base.config.vocab_size,
        "embedding_size": base.config.hidden_size,
        "activation_function": next(found),
        "label2id": None,
    }
    # Without the decoder, which the library would load in place of its base's embeddings.
    _, names = _names(name)
    return options, names


def new_word_head(base: Base, name: str) -> dict[str, np.ndarray]:
    """The head of an adapter without one: the base's own, if its files have it, or a fresh one."""
    logging.warning(
        "%s has no head. It gets %s for masked words; put it below another adapter, or start a "
        "training from it.",
        *(name, "the base's" if base.pretraining_head else "a fresh one"),
    )
    if base.pretraining_head:
        return base.pretraining_head
    rng, weights = np.random.default_rng(0), {}
    for path, spec in masked_word_specs(vars(base.config)).items():
        value = np.full(spec.shape, spec.start == "ones")
        if isinstance(spec.start, float):
            value = rng.normal(0, spec.start, spec.shape)
        weights[path] = value.astype(np.float32)
    return weights


def _names(name: str) -> tuple[str, dict[str, str]]:
    """The library's name of the decoder, and those of the head's weights by common name."""
    return f"heads.{name}.3.weight", {
        f"{DENSE}/kernel": f"heads.{name}.0.weight",
        f"{DENSE}/bias": f"heads.{name}.0.bias",
        f"{NORM}/gamma": f"heads.{name}.2.weight",
        f"{NORM}/beta": f"heads.{name}.2.bias",
        BIAS: f"heads.{name}.3.bias",
    }
