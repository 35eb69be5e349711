"""The configuration of a base, read from its JSON file: sizes, activation, dropout rates."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

# Google's `gelu` is the tanh approximation, Hugging Face's is exact.
GOOGLE_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "tanh": "tanh", "linear": "linear"}
HUGGING_FACE_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
}
# The name of each size here and in the file.
SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "inner_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "type_vocab_size": "type_vocab_size",
}
DEFAULTS = {"max_sequence_length": 512, "type_vocab_size": 2}
LARGEST = {
    "vocab_size": 2_000_000,
    "hidden_size": 16_384,
    "num_layers": 256,
    "num_attention_heads": 1_024,
    "inner_dim": 65_536,
    "type_vocab_size": 1_024,
    "max_sequence_length": 65_536,
}
MOST_PARAMETERS = 2**32
LARGEST_FILE = 16 << 20
# Other numbers: the default, a check, and what the message asks for.
NUMBERS: dict[str, tuple[float, Callable[[float], bool], str]] = {
    "hidden_dropout_prob": (0.1, lambda x: 0 <= x < 1, "from 0 to below 1"),
    "attention_probs_dropout_prob": (0.1, lambda x: 0 <= x < 1, "from 0 to below 1"),
    "initializer_range": (0.02, lambda x: 0 <= x <= 100, "from 0 to 100"),
    "layer_norm_eps": (1e-12, lambda x: 0 < x < 1, "above 0, below 1"),
}
# The fields of a `BertConfig` that they become.
NUMBER_NAMES = {
    "output_dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
    "norm_epsilon": "layer_norm_eps",
}


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """The configuration of a pretrained BERT; `activation` is a key of `ACTIVATION_FUNCTIONS`."""

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

    Raises `InputError` when the file is missing or is not a BERT's, lacks a size or has an invalid
    value.
    """
    values = storage.read_json_object(path, LARGEST_FILE)
    _check_is_bert(path, values)
    sizes: dict[str, Any] = {
        name: values.get(file_name, DEFAULTS.get(name)) for name, file_name in SIZES.items()
    }
    _check_sizes(path, sizes)
    numbers: dict[str, Any] = {
        field: _number(path, values, name) for field, name in NUMBER_NAMES.items()
    }
    try:
        return BertConfig(**sizes, activation=_activation(path, values), **numbers)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def is_hugging_face(values: Mapping[str, Any]) -> bool:
    """Whether a configuration was written by Hugging Face's libraries."""
    return bool({"model_type", "transformers_version", "architectures"} & set(values))


def _check_is_bert(path: str, values: Mapping[str, Any]) -> None:
    needed = [file_name for name, file_name in SIZES.items() if name not in DEFAULTS]
    if missing := [name for name in needed if name not in values]:
        raise InputError(f"{path} has no {missing}. Found: {preview(sorted(values))}")
    for key, allowed in (("model_type", "bert"), ("position_embedding_type", "absolute")):
        if values.get(key, allowed) != allowed:
            raise InputError(f"{path}: {key} must be {allowed!r}. Received: {preview(values[key])}")
    if values.get("embedding_size", values.get("hidden_size")) != values.get("hidden_size"):
        raise InputError(f"{path}: factorized embeddings (ALBERT, ELECTRA) are not supported.")


def _check_sizes(path: str, sizes: Mapping[str, Any]) -> None:
    """Raises `InputError` for a size out of range, before anything of that size is built."""
    for name, size in sizes.items():
        if type(size) is not int or not 0 < size <= LARGEST[name]:
            raise InputError(
                f"{path}: {SIZES[name]} must be a whole number from 1 to {LARGEST[name]:,}. "
                f"Received: {preview(size)}"
            )
    # Approximately: all kernels and embeddings.
    hidden = sizes["hidden_size"]
    rows = sizes["vocab_size"] + sizes["max_sequence_length"] + sizes["type_vocab_size"]
    layer = 4 * hidden**2 + 2 * hidden * sizes["inner_dim"]
    count = rows * hidden + sizes["num_layers"] * layer + hidden**2
    if count > MOST_PARAMETERS:
        raise InputError(
            f"{path}: a model of these sizes has {count:,} parameters, more than the "
            f"{MOST_PARAMETERS:,} supported. Received: {preview(dict(sizes), 400)}"
        )


def _number(path: str, values: Mapping[str, Any], name: str) -> float:
    default, is_right, allowed = NUMBERS[name]
    value = values.get(name, default)
    if type(value) not in (int, float) or not is_right(value):
        raise InputError(f"{path}: {name} must be a number {allowed}. Received: {preview(value)}")
    return float(value)


def _activation(path: str, values: Mapping[str, Any]) -> str:
    table = HUGGING_FACE_ACTIVATIONS if is_hugging_face(values) else GOOGLE_ACTIVATIONS
    name = values.get("hidden_act", "gelu")
    if not isinstance(name, str) or name not in table:
        raise InputError(
            f"{path}: hidden_act must be one of {sorted(table)}. Received: {preview(name)}"
        )
    return table[name]
