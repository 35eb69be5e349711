"""The configuration of a base, read from its JSON file: sizes, activation, dropout rates."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Damaged, InputError, Unsupported
from adapter_bert_tf.sanitize import preview

# Google's `gelu` is the tanh approximation, Hugging Face's is exact.
GOOGLE_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "tanh": "tanh", "linear": "linear"}
HUGGING_FACE_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "swish": "swish",
    "silu": "swish",
}
# The sizes of a `BertConfig`: their names in the file, the largest values, defaults.
SIZES: dict[str, tuple[str, int, int | None]] = {
    "vocab_size": ("vocab_size", 2_000_000, None),
    "hidden_size": ("hidden_size", 16_384, None),
    "num_layers": ("num_hidden_layers", 256, None),
    "num_attention_heads": ("num_attention_heads", 1_024, None),
    "inner_dim": ("intermediate_size", 65_536, None),
    "max_sequence_length": ("max_position_embeddings", 65_536, 512),
    "type_vocab_size": ("type_vocab_size", 1_024, 2),
}
LARGEST = {name: largest for name, (_, largest, _) in SIZES.items()}
MOST_PARAMETERS = 2**32
LARGEST_FILE = 16 << 20


def _is_rate(value: float) -> bool:
    return 0 <= value < 1


# Its other numbers: their names in the file, defaults, checks, and the words for these.
NUMBERS: dict[str, tuple[str, float, Callable[[float], bool], str]] = {
    "output_dropout": ("hidden_dropout_prob", 0.1, _is_rate, "from 0 to below 1"),
    "attention_dropout": ("attention_probs_dropout_prob", 0.1, _is_rate, "from 0 to below 1"),
    "initializer_range": ("initializer_range", 0.02, lambda x: 0 <= x <= 100, "from 0 to 100"),
    "norm_epsilon": ("layer_norm_eps", 1e-12, lambda x: 0 < x < 1, "above 0, below 1"),
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
    """Reads Google's `bert_config.json` or Hugging Face's `config.json`. Raises `InputError`."""
    values = storage.read_json_object(path, LARGEST_FILE)
    _check_is_bert(path, values)
    sizes: dict[str, Any] = {
        name: values.get(key, default) for name, (key, _, default) in SIZES.items()
    }
    _check_sizes(path, sizes)
    numbers: dict[str, Any] = {field: _number(path, values, field) for field in NUMBERS}
    try:
        return BertConfig(**sizes, activation=_activation(path, values), **numbers)
    except InputError as error:
        raise Damaged(f"{path}: {error}") from error


def is_hugging_face(values: Mapping[str, Any]) -> bool:
    """Whether a configuration was written by Hugging Face's libraries."""
    return bool({"model_type", "transformers_version", "architectures"} & set(values))


def _check_is_bert(path: str, values: Mapping[str, Any]) -> None:
    needed = [key for key, _, default in SIZES.values() if default is None]
    if missing := [name for name in needed if name not in values]:
        raise Damaged(f"{path} has no {missing}. Found: {preview(sorted(values))}")
    for key, allowed in (("model_type", "bert"), ("position_embedding_type", "absolute")):
        if values.get(key, allowed) != allowed:
            raise Unsupported(f"{path}: {key} is {preview(values[key])}, not {allowed!r}.")
    if is_decoder := values.get("is_decoder"):  # It sees only the words before each.
        raise Unsupported(f"{path}: is_decoder is not supported. Received: {preview(is_decoder)}")
    if values.get("embedding_size", values.get("hidden_size")) != values.get("hidden_size"):
        raise Unsupported(f"{path}: factorized embeddings (ALBERT, ELECTRA) are not supported.")


def _check_sizes(path: str, sizes: Mapping[str, Any]) -> None:
    """Raises `InputError` for a size out of range, before anything of that size is built."""
    for name, size in sizes.items():
        if type(size) is not int or not 0 < size <= LARGEST[name]:
            raise InputError(
                f"{path}: {SIZES[name][0]} must be a whole number from 1 to {LARGEST[name]:,}. "
                f"Received: {preview(size)}"
            )
    # Approximately: all kernels and embeddings.
    hidden = sizes["hidden_size"]
    rows = sizes["vocab_size"] + sizes["max_sequence_length"] + sizes["type_vocab_size"]
    layer = 4 * hidden**2 + 2 * hidden * sizes["inner_dim"]
    count = rows * hidden + sizes["num_layers"] * layer + hidden**2
    if count > MOST_PARAMETERS:
        raise Unsupported(
            f"{path}: a model of these sizes has {count:,} parameters, more than the "
            f"{MOST_PARAMETERS:,} supported. Received: {preview(dict(sizes), 400)}"
        )


def _number(path: str, values: Mapping[str, Any], field: str) -> float:
    name, default, is_right, allowed = NUMBERS[field]
    value = values.get(name, default)
    if type(value) not in (int, float) or not is_right(value):
        raise InputError(f"{path}: {name} must be a number {allowed}. Received: {preview(value)}")
    return float(value)


def _activation(path: str, values: Mapping[str, Any]) -> str:
    table = HUGGING_FACE_ACTIVATIONS if is_hugging_face(values) else GOOGLE_ACTIVATIONS
    name = values.get("hidden_act", "gelu")
    if not isinstance(name, str) or name not in table:
        raise Unsupported(
            f"{path}: hidden_act must be one of {sorted(table)}. Received: {preview(name)}"
        )
    return table[name]
