"""What is known of every variable before it is there: its shape, its group, its layer."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.errors import InputError

POOLER = "bert/pooler/dense"
BASE_GROUPS = ("LayerNorm", "pooler", "head", "layers", "embeddings")
ATTENTION_DROPOUT = 0.1  # Of a base whose sizes do not say it, as `AdapterBertEncoder` has it.
_parts_groups: list[str] = []

Sizes = Mapping[str, Any]  # What `BertConfig` says: `hidden_size`, `num_layers` and the others.


@dataclasses.dataclass(frozen=True)
class VariableSpec:
    """What a variable is.

    Args:
      shape: of the variable.
      group: what it counts as in the report, and is chosen by: one of `groups()`.
      layer: index of the encoder layer that it belongs to, from 0; None for none.
      start: `zeros`, `ones`, `near_identity` (1 on the diagonal, else 1e-6), or the standard
        deviation of a normal.
      cut: whether that normal is cut at two sigma.
      to_identity: of a square matrix W: `to_identity * ||I - W||^2` is added to the loss.

    Raises:
      InputError: for an unknown group.
    """

    shape: tuple[int, ...]
    group: str
    layer: int | None = None
    start: str | float = "zeros"
    cut: bool = True
    to_identity: float = 0.0

    def __post_init__(self) -> None:
        if self.group not in groups():
            raise InputError(
                f"A variable's group must be one of {groups()}; `declare_groups` adds to them. "
                f"Received: {self.group!r}"
            )


def groups() -> tuple[str, ...]:
    """All groups of variables, in the order of the report: those of parts, then the base's."""
    return (*_parts_groups, *BASE_GROUPS)


def check_specs(specs: Mapping[str, VariableSpec], sizes: Sizes) -> None:
    """What runs beside a base must not take its names or groups, or layers it has not.

    Args:
      specs: of the variables beside the base.
      sizes: of the base.

    Raises:
      InputError: when one does.
    """
    taken = [n for n in specs if n in base_specs(sizes) or n.startswith(("bert/", "head/"))]
    depth = sizes["num_layers"]
    outside = [n for n, s in specs.items() if s.layer is not None and not 0 <= s.layer < depth]
    counted = [n for n, s in specs.items() if s.group in BASE_GROUPS]
    if wrong := taken or outside or counted:
        raise InputError(
            "Variables beside the base need names of their own, not below bert/ or head/, layers "
            f"from 0 to {depth - 1}, and groups of their own, none of {BASE_GROUPS}. Received: "
            f"{[(name, specs[name].group, specs[name].layer) for name in wrong[:5]]}"
        )


def declare_groups(names: tuple[str, ...]) -> None:
    """Makes groups known; a kind of parts does this when it is registered."""
    _parts_groups.extend(
        name for name in names if name not in _parts_groups and name not in BASE_GROUPS
    )


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


def base_specs(sizes: Sizes) -> dict[str, VariableSpec]:
    """Dict from common name to `Spec` of a BERT's variables, as Model Garden's layers have them.

    Args:
      sizes: with `vocab_size`, `hidden_size`, `num_layers`, `num_attention_heads`, `inner_dim`,
        `max_sequence_length` and `type_vocab_size`.
    """
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
    return specs | _dense(POOLER, (hidden,), (hidden,), "pooler", None)


def _block_specs(layer: int, sizes: Sizes) -> dict[str, VariableSpec]:
    hidden, inner = (sizes["hidden_size"],), (sizes["inner_dim"],)
    heads = (sizes["num_attention_heads"], hidden[0] // sizes["num_attention_heads"])
    prefix = f"bert/encoder/layer_{layer}"
    return {
        **_dense(f"{prefix}/attention/self/query", hidden, heads, "layers", layer),
        **_dense(f"{prefix}/attention/self/key", hidden, heads, "layers", layer),
        **_dense(f"{prefix}/attention/self/value", hidden, heads, "layers", layer),
        **_dense(f"{prefix}/attention/output/dense", heads, hidden, "layers", layer),
        **_norm(f"{prefix}/attention/output/LayerNorm", hidden[0], layer),
        **_dense(f"{prefix}/intermediate/dense", hidden, inner, "layers", layer),
        **_dense(f"{prefix}/output/dense", inner, hidden, "layers", layer),
        **_norm(f"{prefix}/output/LayerNorm", hidden[0], layer),
    }


def _dense(
    prefix: str, inputs: tuple[int, ...], outputs: tuple[int, ...], group: str, layer: int | None
) -> dict[str, VariableSpec]:
    return {
        f"{prefix}/kernel": VariableSpec((*inputs, *outputs), group, layer),
        f"{prefix}/bias": VariableSpec(outputs, group, layer),
    }


def _norm(prefix: str, hidden: int, layer: int | None) -> dict[str, VariableSpec]:
    return {
        f"{prefix}/{name}": VariableSpec((hidden,), "LayerNorm", layer)
        for name in ("gamma", "beta")
    }
