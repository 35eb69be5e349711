"""LoRA: products of two small kernels, added to projections of the base."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from adapter_bert_tf.adapters import fields
from adapter_bert_tf.adapters.modules import DenseChange, Projection
from adapter_bert_tf.adapters.ops import product
from adapter_bert_tf.adapters.registry import module_for, register
from adapter_bert_tf.adapters.variable_specs import (
    DENSE_PATHS,
    Sizes,
    VariableSpec,
    dense_path,
    projection_widths,
)
from adapter_bert_tf.lazy import tf

ByPlace = Mapping[str, Any] | tuple[tuple[str, Any], ...]


def _by_place(rule: fields.Rule) -> fields.Rule:
    """The rule of values for single places such as `layer_3/query`."""

    def is_right(pairs: Any) -> bool:
        known = isinstance(pairs, tuple) and all(
            isinstance(pair, tuple) and len(pair) == 2 for pair in pairs
        )
        return known and all(_is_place(place) and rule[0](value) for place, value in pairs)

    return is_right, f"an object from places such as layer_3/query to values, each {rule[1]}"


def _is_place(place: Any) -> bool:
    layer, _, projection = place.partition("/") if isinstance(place, str) else ("", "", "")
    index = layer.removeprefix("layer_")
    known = index.isascii() and index.isdecimal() and str(int(index[:9])) == index
    known = known and layer != index and int(index) < fields.MOST_LAYERS
    return known and projection in DENSE_PATHS


RULES: dict[str, fields.Rule] = {
    "rank": fields.SIZE,
    "alpha": fields.FACTOR,
    "dropout": fields.RATE,
    "projections": fields.some_of(tuple(DENSE_PATHS)),
    "rank_stabilized": fields.BOOL,
    "init_scale": fields.or_none(fields.DEVIATION),
    "layers": fields.LAYERS,
    "ranks": _by_place(fields.SIZE),
    "alphas": _by_place(fields.FACTOR),
}


@register("lora")
@dataclasses.dataclass(frozen=True)
class LoraConfig(fields.LayeredConfig):
    """Low-rank adaptation (Hu et al. 2021, section 4): `W x + alpha / rank * B A x`.

    The defaults are those of PEFT and AdapterHub: rank and alpha 8, queries and values.

    Args:
      rank: columns of A and rows of B; a projection has `rank * (inputs + outputs)` parameters.
      alpha: the change is multiplied by `alpha / rank`. Another rank leaves it as it is.
      dropout: rate applied to the input of A.
      projections: which dense layers of a block change, of `variable_specs.DENSE_PATHS`.
      rank_stabilized: the factor is `alpha / sqrt(rank)` (rsLoRA, Kalajdzievski 2023).
      init_scale: standard deviation of the truncated normal that A is drawn from. None: uniform up
        to `1 / sqrt(inputs)`, as in the authors' code. B starts at zero, so the model as the base.
      layers: indices of the encoder layers that change, from 0; None means all.
      ranks, alphas: dicts from places such as `layer_3/query` to other ranks and alphas. They
        become tuples of pairs; values of no effect are left out.

    Raises:
      InputError: if a value is out of range.
    """

    stackable: ClassVar[bool] = True
    why_unmerged: ClassVar[str] = ""
    adjustable: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "size": ("rank", "ranks"),
        "layers": ("layers",),
        "init_scale": ("init_scale",),
    }

    rank: int = 8
    alpha: float = 8.0
    dropout: float = 0.0
    projections: tuple[str, ...] = ("query", "value")
    rank_stabilized: bool = False
    init_scale: float | None = None
    layers: tuple[int, ...] | None = None
    ranks: ByPlace = ()
    alphas: ByPlace = ()

    def __post_init__(self) -> None:
        for name in ("ranks", "alphas"):
            value = getattr(self, name)
            pairs = tuple(value.items()) if isinstance(value, Mapping) else value
            object.__setattr__(self, name, pairs)
        fields.check_fields("LoRA config", self, RULES)
        self.sort_layers()
        for name, usual in (("ranks", self.rank), ("alphas", self.alpha)):
            pairs = tuple(
                (place, value)
                for place, value in sorted(dict(getattr(self, name)).items())
                if value != usual and self._has(place)
            )
            object.__setattr__(self, name, pairs)

    def _has(self, place: str) -> bool:
        layer, _, projection = place.partition("/")
        index = int(layer.removeprefix("layer_"))
        return projection in self.projections and (self.layers is None or index in self.layers)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """Variables `adapters/layer_I/PROJECTION/lora_a` and `lora_b`, lowest layer first."""
        start = "fan_in_uniform" if self.init_scale is None else self.init_scale
        specs: dict[str, VariableSpec] = {}
        for i in self.layer_indices(sizes["num_layers"]):
            for name in self.projections:
                inputs, outputs = projection_widths(name, sizes)
                rank, prefix = self.rank_of(i, name), f"adapters/layer_{i}/{name}"
                specs[f"{prefix}/lora_a"] = VariableSpec((inputs, rank), "adapters", i, start)
                specs[f"{prefix}/lora_b"] = VariableSpec((rank, outputs), "adapters", i)
        return specs

    def rank_of(self, layer: int, projection: str) -> int:
        """The rank in a place."""
        rank: int = dict(self.ranks).get(f"layer_{layer}/{projection}", self.rank)
        return rank

    @property
    def factors(self) -> tuple[str, ...]:
        return "lora_a", "lora_b"

    def sizes(self, num_layers: int) -> tuple[int, ...]:
        layers = self.layer_indices(num_layers)
        return tuple(self.rank_of(i, name) for i in layers for name in self.projections)

    def factor_of(self, layer: int, projection: str) -> float:
        """The factor of `B A x` in a place."""
        rank = self.rank_of(layer, projection)
        alpha = dict(self.alphas).get(f"layer_{layer}/{projection}", self.alpha)
        return float(alpha / (math.sqrt(rank) if self.rank_stabilized else rank))

    def layer_indices(self, num_layers: int) -> tuple[int, ...]:
        places = [place for place, _ in (*tuple(self.ranks), *tuple(self.alphas))]
        layers = tuple(int(place.partition("/")[0].removeprefix("layer_")) for place in places)
        fields.check_layers(layers, num_layers)
        return super().layer_indices(num_layers)

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        if not self.dropout:
            return {}
        return {name.rpartition("/")[0]: self.dropout for name in self.specs(sizes)}

    def weighted_sum(
        self, values: Sequence[Mapping[str, np.ndarray]], shares: Sequence[float]
    ) -> tuple[LoraConfig, dict[str, np.ndarray]]:
        """LoRA of the sum of all ranks: the columns of all A, and the rows of all B."""
        count = len(values)
        # A larger rank divides alpha by more.
        growth = math.sqrt(count) if self.rank_stabilized else count
        config = dataclasses.replace(
            self,
            rank=count * self.rank,
            alpha=growth * self.alpha,
            ranks={place: count * rank for place, rank in dict(self.ranks).items()},
            alphas={place: growth * alpha for place, alpha in dict(self.alphas).items()},
        )
        summed = {}
        for name in values[0]:
            if name.endswith("/lora_a"):
                summed[name] = np.concatenate([each[name] for each in values], 1)
            else:
                parts = (s * each[name] for s, each in zip(shares, values, strict=True))
                summed[name] = np.concatenate(list(parts), 0)
        return config, summed

    def merged(
        self, values: Mapping[str, np.ndarray], base: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        kernels: dict[str, np.ndarray] = {}
        for name in (name for name in values if name.endswith("/lora_a")):
            prefix = name.removesuffix("/lora_a")
            _, layer, projection = prefix.split("/")
            index = int(layer.removeprefix("layer_"))
            a, b = (values[f"{prefix}/lora_{part}"].astype(np.float64) for part in "ab")
            path = f"{dense_path(index, projection)}/kernel"
            change = self.factor_of(index, projection) * (a @ b)
            kernels[path] = (base[path] + change.reshape(base[path].shape)).astype(np.float32)
        return kernels

    def summary(self) -> str:
        method = "LoRA, stabilized," if self.rank_stabilized else "LoRA"
        others = f" ({len(dict(self.ranks))} places with another)" if self.ranks else ""
        return (
            f"{method} of rank {self.rank}{others}, alpha {self.alpha:g}, on "
            f"{', '.join(self.projections)}{self.layers_text()}"
        )

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"ranks": dict(self.ranks), "alphas": dict(self.alphas)}


@module_for(LoraConfig)
class LoraModule(fields.LayeredModule):
    """Adds `alpha / rank * input A B` to the output of a projection."""

    config: LoraConfig

    def adapt_projection(self, projection: Projection) -> tf.Tensor:
        place = f"layer_{projection.layer}/{projection.name}"
        prefix, x = f"adapters/{place}", projection.input
        if prefix in self.dropouts:
            x = self.dropouts[prefix](x)
        # As in a bottleneck: for profiles, and for the order in which gradients are summed.
        with tf.name_scope(place):
            x = product(x, self.values[f"{prefix}/lora_a"], self.stacked)
            x *= self.config.factor_of(projection.layer, projection.name)
            return projection.output + product(x, self.values[f"{prefix}/lora_b"], self.stacked)

    def dense_changes(self, layer: int) -> dict[str, DenseChange]:
        if self.stacked:
            return {}
        changes = {}
        for name in self.projections(layer):
            prefix = f"adapters/layer_{layer}/{name}"
            a, b = (self.values[f"{prefix}/lora_{part}"] for part in "ab")
            b = b * self.config.factor_of(layer, name)
            changes[name] = DenseChange(a, b, dropout=self.dropouts.get(prefix))
        return changes
