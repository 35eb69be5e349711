"""Writes a base whose weights were trained as a folder of Hugging Face's files."""

import json
import os
import re
from typing import Any

import numpy as np
import safetensors.numpy

from adapter_bert_tf import storage
from adapter_bert_tf.base import Base
from adapter_bert_tf.base.config import HUGGING_FACE_ACTIVATIONS, NUMBERS, SIZES
from adapter_bert_tf.base.files import VOCABULARIES
from adapter_bert_tf.base.tokenizer_files import ADDED, CONFIG, SPECIAL
from adapter_bert_tf.errors import Mismatch, Unsupported
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.adapter_dir import require_free
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.files import write_files
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.task_types.masked_words import MASKED_WORDS

TOKENIZER_FILES = (*VOCABULARIES, CONFIG, SPECIAL, ADDED)
# From common names to Hugging Face's.
RULES = (
    (r"^head/bias$", "cls.predictions.bias"),
    (r"^head/layer_norm/", "head/LayerNorm/"),
    (r"^head/", "cls.predictions.transform."),
    (r"layer_(\d+)", r"layer.\1"),
    (r"/gamma$", ".weight"),
    (r"/beta$", ".bias"),
    (r"/kernel$", ".weight"),
    (r"_embeddings$", "_embeddings.weight"),
    (r"/", "."),
)


def export_base(saved: SavedAdapter, folder: str, base: Base) -> None:
    """Writes the base with the trained weights: `config.json`, `model.safetensors`, vocabulary.

    The head of masked words is written too, as `BertForMaskedLM` has it; those of tasks are not.
    Raises `InputError` if modules in addition to the base were trained, or the base is another one.
    """
    config = saved.config
    if config["adapter"]:
        raise Unsupported(
            f"The files of a base cannot hold the modules of {config['method']!r}; only methods "
            "that train the base itself, such as full tuning, can be exported as one."
        )
    check_base(config, base.fingerprint())
    require_free(folder)
    has_head = type_of(config) is MASKED_WORDS
    weights = base.stored_weights | dict(saved.weights)
    kept = ("bert/", "head/") if has_head else ("bert/",)
    hidden = base.config.hidden_size
    tensors = {
        _name(name): _flat(name, value, hidden)
        for name, value in weights.items()
        if name.startswith(kept)
    }
    files = {
        "config.json": json.dumps(_config(base, has_head), indent=2).encode(),
        "model.safetensors": safetensors.numpy.save(tensors, {"format": "pt"}),
        **_tokenizer(base),
    }
    write_files(folder, files, require_free)


def _name(name: str) -> str:
    for pattern, replacement in RULES:
        name = re.sub(pattern, replacement, name)
    return name


def _flat(name: str, value: np.ndarray, hidden: int) -> np.ndarray:
    """An array in PyTorch's layout: kernels `[outputs, inputs]`, heads side by side."""
    value = np.asarray(value, np.float32)
    if name.endswith("kernel"):
        by_heads = value.ndim == 3 and value.shape[-1] == hidden and "/output/" in name
        value = value.reshape((-1, hidden) if by_heads else (value.shape[0], -1)).T
    elif name.endswith("bias"):
        value = value.reshape(-1)
    return np.ascontiguousarray(value)


def _config(base: Base, has_head: bool) -> dict[str, Any]:
    names = {own: theirs for theirs, own in reversed(HUGGING_FACE_ACTIVATIONS.items())}
    if base.config.activation not in names:
        raise Unsupported(
            f"Hugging Face's files have no activation {base.config.activation!r}, so the base "
            "cannot be exported."
        )
    names_in_file = {name: row[0] for name, row in SIZES.items()}
    names_in_file |= {name: row[0] for name, row in NUMBERS.items()}
    return {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM" if has_head else "BertModel"],
        "hidden_act": names[base.config.activation],
        **{key: getattr(base.config, name) for name, key in names_in_file.items()},
    }


def _tokenizer(base: Base) -> dict[str, bytes]:
    """The tokenizer's files next to the vocabulary; without any, its case."""
    vocabulary, folder = base.vocabulary, os.path.dirname(base.vocabulary.path)
    named = {os.path.basename(vocabulary.path)} | {*TOKENIZER_FILES}
    files = {
        name: storage.read_bytes(os.path.join(folder, name))
        for name in sorted(named)
        if storage.exists(os.path.join(folder, name))
    }
    own = files.pop(os.path.basename(vocabulary.path))
    is_list = os.path.basename(vocabulary.path) not in TOKENIZER_FILES
    files["vocab.txt" if is_list else os.path.basename(vocabulary.path)] = own
    stated = {"do_lower_case": vocabulary.lower_case}
    if vocabulary.case_is_inferred or CONFIG not in files:
        given = json.loads(files.get(CONFIG, b"{}"))
        if given.get("do_lower_case", vocabulary.lower_case) != vocabulary.lower_case:
            raise Mismatch(f"{folder}: its files contradict the case of the adapter.")
        files[CONFIG] = json.dumps(given | stated, indent=2).encode()
    return files
