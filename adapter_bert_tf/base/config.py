"""The sizes of a base and the choices its pretraining made, read from its JSON file."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError

# The same word means two functions: Google's `gelu` is the tanh form, Hugging Face's the exact one.
GOOGLE_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "tanh": "tanh", "linear": "linear"}
HUGGING_FACE_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
}


SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Sizes and choices of a pretrained BERT; `activation` is a name of ours."""

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_attention_heads: int
    inner_dim: int
    activation: str
    output_dropout: float
    attention_dropout: float
    max_sequence_length: int
    type_vocab_size: int
    initializer_range: float
    norm_epsilon: float

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise InputError(
                f"hidden_size must be divisible by num_attention_heads. Received: "
                f"{self.hidden_size} and {self.num_attention_heads}"
            )


def read_config(path: str) -> BertConfig:
    """Reads `bert_config.json` (Google) or `config.json` (Hugging Face).

    Raises:
      InputError: when it is not there, not JSON, not BERT, or misses a size.
    """
    try:
        values = json.loads(storage.read_text(path))
    except tf.errors.NotFoundError as error:
        raise InputError(f"No configuration file at {path!r}.") from error
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read {path!r}: {error}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from error
    _check_is_bert(path, values)
    try:
        return BertConfig(
            vocab_size=values["vocab_size"],
            hidden_size=values["hidden_size"],
            num_layers=values["num_hidden_layers"],
            num_attention_heads=values["num_attention_heads"],
            inner_dim=values["intermediate_size"],
            activation=_activation(path, values),
            output_dropout=values.get("hidden_dropout_prob", 0.1),
            attention_dropout=values.get("attention_probs_dropout_prob", 0.1),
            max_sequence_length=values.get("max_position_embeddings", 512),
            type_vocab_size=values.get("type_vocab_size", 2),
            initializer_range=values.get("initializer_range", 0.02),
            norm_epsilon=values.get("layer_norm_eps", 1e-12),
        )
    except KeyError as error:
        raise InputError(f"{path} has no {error}. Found: {sorted(values)}") from error


def is_hugging_face(values: Mapping[str, Any]) -> bool:
    """Whether a configuration was written by Hugging Face's libraries."""
    return bool({"model_type", "transformers_version", "architectures"} & set(values))


def _check_is_bert(path: str, values: Any) -> None:
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold a JSON object. Received: {values!r}")
    sizes = {key: values[key] for key in SIZES if key in values}
    wrong = [key for key, size in sizes.items() if not isinstance(size, int) or size < 1]
    if wrong:
        raise InputError(f"{path}: {wrong} must be whole numbers above 0.")
    for key, allowed in (("model_type", "bert"), ("position_embedding_type", "absolute")):
        if values.get(key, allowed) != allowed:
            raise InputError(f"{path}: {key} must be {allowed!r}. Received: {values[key]!r}")
    if values.get("embedding_size", values.get("hidden_size")) != values.get("hidden_size"):
        raise InputError(f"{path}: factorized embeddings (ALBERT, ELECTRA) are not supported.")


def _activation(path: str, values: Mapping[str, Any]) -> str:
    table = HUGGING_FACE_ACTIVATIONS if is_hugging_face(values) else GOOGLE_ACTIVATIONS
    name = values.get("hidden_act", "gelu")
    if name not in table:
        raise InputError(f"{path}: hidden_act must be one of {sorted(table)}. Received: {name!r}")
    return table[name]
