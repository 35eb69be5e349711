"""Prefix tuning: trained keys and values in front of those of every text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from adapter_bert_tf.adapters import fields
from adapter_bert_tf.adapters.modules import AdapterModule, Projection
from adapter_bert_tf.adapters.ops import ROWS, Tensor, product
from adapter_bert_tf.adapters.registry import module_for, register
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec
from adapter_bert_tf.lazy import tf

NAMES = ("key", "value")
SHARED = "adapters/prefix"  # Variables of the reparametrization that all layers share.
INNER_SIZE = 512
RULES: dict[str, fields.Rule] = {
    "length": fields.SIZE,
    "reparametrized": fields.BOOL,
    "inner_size": fields.SIZE,
    "init_scale": fields.DEVIATION,
    "dropout": fields.RATE,
    "layers": fields.LAYERS,
}


@register("prefix")
@dataclasses.dataclass(frozen=True)
class PrefixConfig(fields.LayeredConfig):
    """Prefix tuning (Li & Liang 2021, section 4): each layer attends to `length` more positions.

    The model does not start as the base. A reparametrized prefix is trained as the output of a
    small network (section 4.3), and stored as keys and values: adapter directories hold
    `reparametrized=False`.

    Args:
      length: number of positions.
      reparametrized: whether the keys and values are `tanh(E D + d) U + u`, with E, `[length,
        hidden]`, D and d for all layers, U and u for the keys and for the values of each layer.
      inner_size: columns of D, if reparametrized.
      init_scale: standard deviation of the normal that E, or the prefix itself, is drawn from.
      dropout: rate applied to the prefix.
      layers: indices of the encoder layers that get a prefix, from 0; None means all.

    Raises:
      InputError: if a value is out of range.
    """

    stackable: ClassVar[bool] = True
    why_unmerged: ClassVar[str] = "a prefix adds positions, which no weights of the base have"
    adjustable: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "size": ("length",),
        "layers": ("layers",),
        "init_scale": ("init_scale",),
    }

    length: int = 20
    reparametrized: bool = True
    inner_size: int = INNER_SIZE
    init_scale: float = 1.0
    dropout: float = 0.0
    layers: tuple[int, ...] | None = None

    @property
    def learning_rate(self) -> float | None:
        """The rate of its network; at 1e-3, MiniLM predicts one class on CoLA (docs/results.md)."""
        return 3e-4 if self.reparametrized else None

    def __post_init__(self) -> None:
        fields.check_fields("Prefix config", self, RULES)
        self.sort_layers()
        if not self.reparametrized:  # Configurations that compute the same are equal.
            object.__setattr__(self, "inner_size", INNER_SIZE)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """Variables `adapters/layer_I/key/prefix` and of values; reparametrized those of `Args`."""
        hidden, inner = sizes["hidden_size"], self.inner_size
        layers = self.layer_indices(sizes["num_layers"])
        drawn = VariableSpec((self.length, hidden), "adapters", None, self.init_scale, cut=False)
        if not self.reparametrized:
            return {
                f"adapters/layer_{i}/{name}/prefix": dataclasses.replace(drawn, layer=i)
                for i in layers
                for name in NAMES
            }
        specs = {
            f"{SHARED}/embedding": drawn,
            f"{SHARED}/down_kernel": _dense((hidden, inner)),
            f"{SHARED}/down_bias": VariableSpec((inner,), "adapters"),
        }
        for i in layers:
            for name in NAMES:
                prefix = f"adapters/layer_{i}/{name}"
                specs[f"{prefix}/up_kernel"] = _dense((inner, hidden), i)
                specs[f"{prefix}/up_bias"] = VariableSpec((hidden,), "adapters", i)
        return specs

    @property
    def projections(self) -> tuple[str, ...]:
        return NAMES

    @property
    def adds_positions(self) -> bool:
        return True

    def stored_config(self) -> PrefixConfig:
        return dataclasses.replace(self, reparametrized=False)

    def stored_values(
        self, values: Mapping[str, Tensor], stacked: str | None = None
    ) -> dict[str, Tensor]:
        """The keys and values of all layers; other values stay. `stacked` is as of `ops.dense`."""
        if not self.reparametrized:
            return dict(values)
        stored = {name: value for name, value in values.items() if not _is_dropped(name)}
        x = values[f"{SHARED}/embedding"]
        x = tf.tanh(_apply(x, values, f"{SHARED}/down", stacked))
        for name in values:
            prefix = name.removesuffix("/up_kernel")
            if prefix != name and name not in stored:
                stored[f"{prefix}/prefix"] = _apply(x, values, f"{prefix}/up", stacked)
        return stored

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        layers = self.layer_indices(sizes["num_layers"]) if self.dropout else ()
        return {f"adapters/layer_{i}/{name}": self.dropout for i in layers for name in NAMES}

    def summary(self) -> str:
        trained = f", reparametrized through {self.inner_size}" if self.reparametrized else ""
        return f"prefix of {self.length} positions{trained}{self.layers_text()}"


def _is_dropped(name: str) -> bool:
    """Whether a variable belongs to the reparametrization."""
    parent, _, last = name.rpartition("/")
    is_last = parent.rpartition("/")[2] in NAMES and last in ("up_kernel", "up_bias")
    return is_last or parent == SHARED


def _dense(shape: tuple[int, int], layer: int | None = None) -> VariableSpec:
    return VariableSpec(shape, "adapters", layer, "fan_in_uniform")


def _apply(x: Tensor, values: Mapping[str, Tensor], name: str, stacked: str | None) -> tf.Tensor:
    """The dense layer of a name, for `[length, size]` or rows of it."""
    x = tf.convert_to_tensor(x)
    kernel, bias = (tf.cast(values[f"{name}_{part}"], x.dtype) for part in ("kernel", "bias"))
    if stacked == ROWS:
        return product(x, kernel, ROWS) + bias[:, tf.newaxis]
    return tf.matmul(x, kernel) + bias


@module_for(PrefixConfig)
class PrefixModule(fields.LayeredModule):
    """Puts the positions of the prefix in front of the keys and values of every row."""

    config: PrefixConfig

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        """The module with the prefix that a reparametrization computes, once for all layers."""
        if not self.config.reparametrized:
            return self
        values = self.config.stored_values(self.values, self.stacked)
        return self.config.stored_config().module(values, self.dropouts, self.stacked)

    def adapt_projection(self, projection: Projection) -> tf.Tensor:
        place, output = f"layer_{projection.layer}/{projection.name}", projection.output
        with tf.name_scope(place):
            prefix = tf.cast(self.values[f"adapters/{place}/prefix"], output.dtype)
            if self.stacked != ROWS:
                prefix = tf.repeat(prefix[tf.newaxis], tf.shape(output)[0], 0)
            if dropout := self.dropouts.get(f"adapters/{place}"):
                prefix = dropout(prefix)
            return tf.concat([prefix, output], 1)
