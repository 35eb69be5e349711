"""The head with which a base was pretrained to predict masked words, where its files have it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import numpy as np
from absl import logging

from adapter_bert_tf.base import tensors
from adapter_bert_tf.base.readers import VALUE, Stored, convert, open_checkpoint, read_tensor

NAMES = {
    "head/dense/kernel",
    "head/dense/bias",
    "head/layer_norm/gamma",
    "head/layer_norm/beta",
    "head/bias",
}
DECODER = "cls.predictions.decoder.weight"
# From names in files to those of this package: Hugging Face's, Google's, Model Garden's.
HUGGING_FACE_RULES = (
    (r"cls\.predictions\.transform\.dense\.weight", "head/dense/kernel"),
    (r"cls\.predictions\.transform\.dense\.bias", "head/dense/bias"),
    (r"cls\.predictions\.transform\.LayerNorm\.(weight|gamma)", "head/layer_norm/gamma"),
    (r"cls\.predictions\.transform\.LayerNorm\.(bias|beta)", "head/layer_norm/beta"),
    (r"cls\.predictions\.(decoder\.)?bias", "head/bias"),
)
CHECKPOINT_RULES = (
    (r"cls/predictions/transform/(dense/kernel|dense/bias)", r"head/\1"),
    (r"cls/predictions/transform/LayerNorm/(gamma|beta)", r"head/layer_norm/\1"),
    (r"cls/predictions/output_bias", "head/bias"),
    (rf"(?:.*/)?masked_lm/(dense/kernel|dense/bias){re.escape(VALUE)}", r"head/\1"),
    (rf"(?:.*/)?masked_lm/layer_norm/(gamma|beta){re.escape(VALUE)}", r"head/layer_norm/\1"),
    (rf"(?:.*/)?masked_lm/output_bias\.Sbias{re.escape(VALUE)}", "head/bias"),
)


def read_pretraining_head(path: str, embeddings: np.ndarray) -> dict[str, np.ndarray]:
    """Reads the head of a `.safetensors` file or a checkpoint prefix, by common name.

    Args:
      path: of the base's weights.
      embeddings: its word embeddings `[words, hidden]`, which a head's decoder must be.

    Returns:
      float32 arrays; empty if the file has no whole head of these sizes, or, with a warning, one
      whose decoder has weights of its own.
    """
    if path.endswith(".safetensors"):
        found = _in_hugging_face(path, embeddings)
    else:
        found = _in_checkpoint(path)
    words, hidden = embeddings.shape
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(NAMES, (hidden,))
    shapes |= {"head/dense/kernel": (hidden, hidden), "head/bias": (words,)}
    return found if {name: value.shape for name, value in found.items()} == shapes else {}


def _in_hugging_face(path: str, embeddings: np.ndarray) -> dict[str, np.ndarray]:
    shapes = tensors.read_shapes(path)
    named = _common_names(shapes, HUGGING_FACE_RULES)
    if named.keys() < NAMES:
        return {}
    wanted = [*named.values(), *([DECODER] if DECODER in shapes else [])]
    values = tensors.read_tensors(path, rf"^(?!(?:{'|'.join(map(re.escape, wanted))})$)")
    decoder = values.get(DECODER)
    if decoder is not None and not np.array_equal(decoder.astype(np.float32), embeddings):
        logging.warning(
            "%s: the decoder of the masked-language model is not tied to the word embeddings, "
            "which is not supported. Its head is not used.",
            path,
        )
        return {}
    found = {}
    for common, name in named.items():
        transposed = common.endswith("kernel")
        shape = shapes[name][::-1] if transposed else shapes[name]
        found[common] = convert(values[name], Stored(name, shape, transposed), path)
    return found


def _in_checkpoint(path: str) -> dict[str, np.ndarray]:
    reader = open_checkpoint(path)
    shapes = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
    named = _common_names(shapes, CHECKPOINT_RULES)
    if named.keys() < NAMES:
        return {}
    read = functools.partial(read_tensor, path, reader)
    return {
        common: convert(read(name), Stored(name, shapes[name]), path)
        for common, name in named.items()
    }


def _common_names(
    names: Mapping[str, object], rules: tuple[tuple[str, str], ...]
) -> dict[str, str]:
    """Dict from common name to the name in the file."""
    return {
        match.expand(common): name
        for name in sorted(names)
        for pattern, common in rules
        if (match := re.fullmatch(pattern, name))
    }
