"""Variable specs: name, shape, group and layer of every variable before it is created."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from adapter_bert_tf.errors import InputError

POOLER = "bert/pooler/dense"
BASE_GROUPS = ("LayerNorm", "pooler", "head", "layers", "embeddings")
ATTENTION_DROPOUT = 0.1  # Of a base whose sizes have none; the default of `AdapterBertEncoder`.
_module_groups: list[str] = []

Value = TypeVar("Value")
Sizes = Mapping[str, Any]  # The fields of `BertConfig`: `hidden_size`, `num_layers` and others.


@dataclasses.dataclass(frozen=True)
class VariableSpec:
    """Shape, group, layer and initial values of a variable.

    Args:
      shape: of the variable.
      group: one of `groups()`; the report counts and a tuning selects by group.
      layer: index of its encoder layer, from 0; None if it belongs to no single layer.
      start: `zeros`, `ones`, `near_identity` (1 on the diagonal, else 1e-6), `fan_in_uniform`
        (up to `1 / sqrt(inputs)`, PyTorch's default for dense layers), or the standard deviation of
        a normal.
      cut: whether that normal is truncated at two standard deviations.
      to_identity: for a square matrix W, `to_identity * ||I - W||^2` is added to the loss.
      is_gate: whether it decides how much of a method's change is used; no change by itself.

    Raises:
      InputError: for an unknown group.
    """

    shape: tuple[int, ...]
    group: str
    layer: int | None = None
    start: str | float = "zeros"
    cut: bool = True
    to_identity: float = 0.0
    is_gate: bool = False

    def __post_init__(self) -> None:
        if self.group not in groups():
            raise InputError(
                f"A variable's group must be one of {groups()}; `declare_groups` adds to them. "
                f"Received: {self.group!r}"
            )


def start_of(spec: VariableSpec) -> np.ndarray | float:
    """What a variable starts at: 1 or the identity, or 0 if it starts near it or at random."""
    if spec.start == "near_identity":
        return np.eye(spec.shape[0])
    return float(spec.start == "ones")


def groups() -> tuple[str, ...]:
    """All groups of variables, in the order of the report: those of modules, then the base's."""
    return (*_module_groups, *BASE_GROUPS)


def check_specs(specs: Mapping[str, VariableSpec], sizes: Sizes) -> None:
    """Raises `InputError` for a module's variable with a forbidden name, group or layer."""
    taken = [n for n in specs if n in base_specs(sizes) or n.startswith(("bert/", "head/"))]
    depth = sizes["num_layers"]
    outside = [n for n, s in specs.items() if s.layer is not None and not 0 <= s.layer < depth]
    counted = [n for n, s in specs.items() if s.group in BASE_GROUPS]
    if wrong := taken or outside or counted:
        raise InputError(
            "Variables of an adapter module need names that are not the base's and not below bert/ "
            f"or head/, layers from 0 to {depth - 1}, and groups other than {BASE_GROUPS}. "
            f"Received: {[(name, specs[name].group, specs[name].layer) for name in wrong[:5]]}"
        )


def declare_groups(names: tuple[str, ...]) -> None:
    """Adds to the groups of variables; `register` does this for a kind of modules."""
    _module_groups.extend(
        name for name in names if name not in _module_groups and name not in BASE_GROUPS
    )


def values_with_prefix(values: Mapping[str, Value], prefix: str) -> dict[str, Value]:
    """The values whose names begin with a prefix and a slash, by the rest of their names."""
    return {
        name.removeprefix(f"{prefix}/"): value
        for name, value in values.items()
        if name.startswith(f"{prefix}/")
    }


def norm_names(num_layers: int) -> list[str]:
    """Common names of all LayerNorms of an encoder, without `/gamma` and `/beta`."""
    blocks = [
        norm_after(i, sublayer)
        for i in range(num_layers)
        for sublayer in ("attention", "feed_forward")
    ]
    return ["bert/embeddings/LayerNorm", *blocks]


def norm_after(layer: int, sublayer: str) -> str:
    """Common name of the LayerNorm that follows a sublayer."""
    place = "attention/output" if sublayer == "attention" else "output"
    return f"bert/encoder/layer_{layer}/{place}/LayerNorm"


# Where Google's checkpoints have the dense layers of a block, by the names of projections.
DENSE_PATHS = {
    "query": "attention/self/query",
    "key": "attention/self/key",
    "value": "attention/self/value",
    "attention_output": "attention/output/dense",
    "intermediate": "intermediate/dense",
    "output": "output/dense",
}


def dense_path(layer: int, projection: str) -> str:
    """Common name of a projection's dense layer, without `/kernel` and `/bias`."""
    return f"bert/encoder/layer_{layer}/{DENSE_PATHS[projection]}"


def projection_widths(projection: str, sizes: Sizes) -> tuple[int, int]:
    """Sizes of the input and the output of one of `modules.PROJECTIONS`."""
    hidden, inner = sizes["hidden_size"], sizes["inner_dim"]
    feed_forward = {
        "intermediate": (hidden, inner),
        "activation": (inner, inner),
        "output": (inner, hidden),
    }
    return feed_forward.get(projection, (hidden, hidden))


def base_specs(sizes: Sizes) -> dict[str, VariableSpec]:
    """Dict from common name to `VariableSpec` of a BERT's variables, in Model Garden's shapes."""
    hidden = sizes["hidden_size"]
    rows = {
        "word": "vocab_size",
        "position": "max_sequence_length",
        "token_type": "type_vocab_size",
    }
    specs = {
        f"bert/embeddings/{name}_embeddings": VariableSpec((sizes[size], hidden), "embeddings")
        for name, size in rows.items()
    }
    specs |= _norm("bert/embeddings/LayerNorm", hidden, None)
    for i in range(sizes["num_layers"]):
        specs |= _block_specs(i, sizes)
    return specs | dense_specs(f"{POOLER}/", (hidden,), (hidden,), "pooler")


def _block_specs(layer: int, sizes: Sizes) -> dict[str, VariableSpec]:
    hidden, inner = (sizes["hidden_size"],), (sizes["inner_dim"],)
    heads = (sizes["num_attention_heads"], hidden[0] // sizes["num_attention_heads"])
    prefix = f"bert/encoder/layer_{layer}"
    return {
        **dense_specs(f"{prefix}/attention/self/query/", hidden, heads, "layers", layer),
        **dense_specs(f"{prefix}/attention/self/key/", hidden, heads, "layers", layer),
        **dense_specs(f"{prefix}/attention/self/value/", hidden, heads, "layers", layer),
        **dense_specs(f"{prefix}/attention/output/dense/", heads, hidden, "layers", layer),
        **_norm(f"{prefix}/attention/output/LayerNorm", hidden[0], layer),
        **dense_specs(f"{prefix}/intermediate/dense/", hidden, inner, "layers", layer),
        **dense_specs(f"{prefix}/output/dense/", inner, hidden, "layers", layer),
        **_norm(f"{prefix}/output/LayerNorm", hidden[0], layer),
    }


def dense_specs(
    prefix: str,
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    group: str,
    layer: int | None = None,
    **start: Any,
) -> dict[str, VariableSpec]:
    """Specs of `PREFIXkernel` and `PREFIXbias`; `start` has further fields of the kernel's."""
    return {
        f"{prefix}kernel": VariableSpec((*inputs, *outputs), group, layer, **start),
        f"{prefix}bias": VariableSpec(outputs, group, layer),
    }


def _norm(prefix: str, hidden: int, layer: int | None) -> dict[str, VariableSpec]:
    return {
        f"{prefix}/{name}": VariableSpec((hidden,), "LayerNorm", layer)
        for name in ("gamma", "beta")
    }
