"""Heads in the options and weights of AdapterHub's library, in both directions."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.variable_specs import POOLER
from adapter_bert_tf.base import Base
from adapter_bert_tf.interop.adapterhub_files import layout
from adapter_bert_tf.interop.adapterhub_files.layout import HEAD_CONFIG, require, require_sound
from adapter_bert_tf.interop.adapterhub_files.word_heads import (
    HEAD_TYPE,
    new_word_head,
    read_word_head,
    write_word_head,
)
from adapter_bert_tf.store import contents
from adapter_bert_tf.task_types import TASK_TYPES, TaskType, type_of
from adapter_bert_tf.task_types.masked_words import MASKED_WORDS

# The library's types of heads, and ours; a classification of one label is a regression.
TYPES = {
    "classification": "classification",
    "multilabel_classification": "multi_label",
    "question_answering": "span",
    "tagging": "tags",
}
HUB_TYPES = {own: hub for hub, own in TYPES.items()} | {"regression": "classification"}
# The first layer of a classification head, dense and tanh on [CLS], is BERT's pooler.
TWO_LAYERS = {"layers": 2, "activation_function": "tanh", "use_pooler": False, "bias": True}
ON_POOLER = {"layers": 1, "use_pooler": True, "bias": True}  # The base's pooler, then one layer.
ON_SEQUENCE = {"layers": 1, "bias": True}
# Heads of transformers' own models: the same as which options, and what their layer is called.
STATIC_HEADS: dict[str, tuple[dict[str, Any], str]] = {
    "BertForSequenceClassification": (ON_POOLER | {"head_type": "classification"}, "classifier"),
    "BertForQuestionAnswering": (ON_SEQUENCE | {"head_type": "question_answering"}, "qa_outputs"),
    "BertForTokenClassification": (ON_SEQUENCE | {"head_type": "tagging"}, "classifier"),
}


@dataclasses.dataclass(frozen=True)
class HubHead:
    """A head of the library.

    Args:
      task_type: key of `TASK_TYPES`.
      labels: in the order of their ids.
      weights: dict from common name to array, of head and pooler.
    """

    task_type: str
    labels: list[str]
    weights: dict[str, np.ndarray]

    @property
    def has_pooler(self) -> bool:
        """Whether it has a pooler of its own, in place of the base's."""
        return f"{POOLER}/kernel" in self.weights


def read_head(folder: str, name: str, base: Base) -> HubHead:
    """Reads the head of the adapter `name`; an adapter of a language may have none.

    Raises `InputError` for an unsupported one.
    """
    if not storage.exists(os.path.join(folder, HEAD_CONFIG)):
        return HubHead(MASKED_WORDS.name, [], new_word_head(base, name))
    file_config = layout.read_object(folder, HEAD_CONFIG)
    options: Any = file_config.get("config")
    layer = None
    if options is None:
        model = str(file_config.get("model_class"))
        known = list(STATIC_HEADS)
        require(model in known, f"the head must be flexible, or of one of {known}", model)
        options, layer = STATIC_HEADS[model]
        options = options | {"label2id": file_config.get("label2id")}
    require_sound(isinstance(options, dict), "the head's config must be an object", options)
    head_type = str(options.get("head_type"))
    known_types = [*TYPES, HEAD_TYPE]
    require(head_type in known_types, f"head_type must be one of {known_types}", head_type)
    tensors = _without_other_heads(layout.read_weights(folder, layout.HEAD_WEIGHTS), name)
    if head_type == HEAD_TYPE:
        weights = read_word_head(options, tensors, name, base)
        require(not tensors, "some weights of the head are not supported", sorted(tensors)[:5])
        return HubHead(MASKED_WORDS.name, [], weights)
    names = _names(head_type, options, name, layer)
    weights = {own: layout.pop_weight(tensors, hub_name) for own, hub_name in names.items()}
    require(not tensors, "some weights of the head are not supported", sorted(tensors)[:5])
    count = weights["head/bias"].size
    if head_type == "classification" and count == 1:
        return HubHead("regression", [], weights)
    fixed = TASK_TYPES[TYPES[head_type]].labels
    labels = list(fixed) if fixed else _labels(options.get("label2id"), count)
    require(len(labels) == count, f"a head of this type has {len(labels)} outputs", count)
    return HubHead(TYPES[head_type], labels, weights)


def _without_other_heads(tensors: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The weights without those of heads whose names begin alike: the library saves them, too."""
    own, alike = f"heads.{name}.", f"heads.{name}"
    return {n: v for n, v in tensors.items() if n.startswith(own) or not n.startswith(alike)}


def _names(
    head_type: str, options: Mapping[str, Any], name: str, layer: str | None
) -> dict[str, str]:
    """Dict from common name to the library's name; `layer` is that of a static head."""
    on_sequence = _reads_sequence(TASK_TYPES[TYPES[head_type]])
    forms: list[dict[str, Any]] = [ON_SEQUENCE] if on_sequence else [TWO_LAYERS, ON_POOLER]
    defaults = TWO_LAYERS | ({"layers": 1} if on_sequence else {})
    given = {key: options.get(key, value) for key, value in defaults.items()}
    given["activation_function"] = str(given["activation_function"]).lower()
    fits = any(all(given[key] == value for key, value in form.items()) for form in forms)
    allowed = " or ".join(map(str, forms))
    require(fits, f"options of the head must be {allowed}", {k: options.get(k) for k in defaults})
    if given["layers"] == 2:
        return _flexible_names(name, two_layers=True)
    layer = layer or f"heads.{name}.1"
    return {"head/kernel": f"{layer}.weight", "head/bias": f"{layer}.bias"}


def _reads_sequence(kind: TaskType) -> bool:
    """Whether a head reads each position, and not [CLS] alone."""
    return "pooler" in kind.unused


def _flexible_names(name: str, two_layers: bool) -> dict[str, str]:
    """The library numbers the parts of a head: a dropout, a layer, an activation and so on."""
    layers = {f"{POOLER}/": 1, "head/": 4} if two_layers else {"head/": 1}
    return {
        f"{own}{weight}": f"heads.{name}.{number}.{hub_weight}"
        for own, number in layers.items()
        for weight, hub_weight in (("kernel", "weight"), ("bias", "bias"))
    }


def _labels(label_ids: Any, count: int) -> list[str]:
    """The labels in the order of their ids; numbers if the file has none."""
    ids = label_ids or {str(i): i for i in range(count)}
    numbers = sorted(map(repr, ids.values())) if isinstance(ids, dict) else None
    is_numbered = numbers == sorted(map(repr, range(count)))
    require_sound(is_numbered, f"label2id must number {count} labels", ids)
    return sorted(ids, key=ids.__getitem__)


def hub_head(
    config: Mapping[str, Any], name: str, base: Base
) -> tuple[dict[str, Any], dict[str, str]]:
    """The library's options of an adapter's head, and a dict from common name to its names."""
    kind, labels = type_of(config), config["labels"]
    if kind is MASKED_WORDS:
        return write_word_head(base, name)
    known = kind.name in HUB_TYPES
    require(known, f"only heads for {list(HUB_TYPES)} can be exported", kind.name)
    has_own_labels = bool(labels) and kind.labels is None
    on_sequence = _reads_sequence(kind)
    options = {"layers": 1, "activation_function": "tanh"} if on_sequence else TWO_LAYERS
    return options | {
        "head_type": HUB_TYPES[kind.name],
        "num_labels": contents.num_outputs(config),
        "dropout_prob": None,
        "label2id": {label: i for i, label in enumerate(labels)} if has_own_labels else None,
    }, _flexible_names(name, two_layers=not on_sequence)
