"""Compacter: bottleneck adapters whose kernels are sums of Kronecker products."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

from adapter_bert_tf.adapters import fields
from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.fields import ACTIVATIONS, SUBLAYERS
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.registry import module_for, register, require
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec
from adapter_bert_tf.lazy import tf

RULE = "adapters/rule"  # The factors that the kernels of all layers share.
RULES: dict[str, fields.Rule] = {
    "bottleneck_size": fields.SIZE,
    "n": (lambda v: fields.is_int(v) and 0 < v <= 256, "an integer from 1 to 256"),
    "rank": fields.SIZE,
    "activation": fields.one_of(ACTIVATIONS),
    "init_scale": fields.DEVIATION,
    "dropout": fields.RATE,
    "sublayers": fields.some_of(SUBLAYERS),
    "normalize_input": fields.BOOL,
    "layers": fields.LAYERS,
}


@register("compacter")
@dataclasses.dataclass(frozen=True)
class CompacterConfig(fields.LayeredConfig):
    """Compacter (Mahabadi et al. 2021, arXiv 2106.04647, section 3).

    An adapter with kernels `sum_i A_i (x) (s_i t_i)`: n Kronecker products of a matrix A_i, `[n,
    n]`, that all kernels share, and a matrix of low rank of their own. Defaults are AdapterHub's
    for BERT-base. It starts near the base, because the A_i are small.

    Args:
      bottleneck_size: width of the bottleneck, a multiple of n.
      n: number and size of the A_i; it divides the hidden size of the base.
      rank: of `s_i t_i`.
      activation: one of `ACTIVATIONS`.
      init_scale: standard deviation of the normal that the A_i are drawn from. The s_i and t_i are
        drawn as by Glorot and Bengio (2010).
      dropout, sublayers, normalize_input, layers: as of `AdapterConfig`.

    Raises:
      InputError: if a value is out of range.
    """

    stackable: ClassVar[bool] = True
    why_unmerged: ClassVar[str] = "an adapter has an activation between its two kernels"
    adjustable: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "size": ("bottleneck_size",),
        "layers": ("layers",),
        "init_scale": ("init_scale",),
    }

    bottleneck_size: int = 24
    n: int = 4
    rank: int = 1
    activation: str = "gelu_erf"
    init_scale: float = 1e-4
    dropout: float = 0.0
    sublayers: tuple[str, ...] = SUBLAYERS
    normalize_input: bool = False
    layers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        fields.check_fields("Compacter config", self, RULES)
        self.sort_layers()
        self._require_divisible("bottleneck_size", self.bottleneck_size)

    def _require_divisible(self, name: str, size: int) -> None:
        message = f"{name} must be a multiple of n, {self.n}"
        require("Compacter config", size % self.n == 0, message, size)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """`adapters/rule`, and variables `adapters/layer_I/SUBLAYER/VARIABLE`."""
        hidden = sizes["hidden_size"]
        self._require_divisible("the hidden size", hidden)
        rule = VariableSpec((self.n,) * 3, "adapters", None, self.init_scale, cut=False)
        return {RULE: rule} | {
            f"adapters/layer_{i}/{sublayer}/{name}": dataclasses.replace(spec, layer=i)
            for i in self.layer_indices(sizes["num_layers"])
            for sublayer in self.sublayers
            for name, spec in self._adapter_specs(hidden).items()
        }

    def _adapter_specs(self, hidden: int) -> dict[str, VariableSpec]:
        specs: dict[str, VariableSpec] = {}
        n, rank, sizes = self.n, self.rank, (hidden, self.bottleneck_size)
        for part, (inputs, outputs) in {"down": sizes, "up": sizes[::-1]}.items():
            specs[f"{part}_left"] = _glorot((n, inputs // n, rank))
            specs[f"{part}_right"] = _glorot((n, rank, outputs // n))
            specs[f"{part}_bias"] = VariableSpec((outputs,), "adapters")
        return specs

    @property
    def changed_sublayers(self) -> tuple[str, ...]:
        return self.sublayers

    def bottleneck(self) -> AdapterConfig:
        """The configuration of adapters with the same kernels."""
        return AdapterConfig(
            self.bottleneck_size,
            self.activation,
            dropout=self.dropout,
            sublayers=self.sublayers,
            layers=self.layers,
            normalize_input=self.normalize_input,
        )

    def bottleneck_values(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The values of `bottleneck`, also of rows."""
        rule, adapters = tf.convert_to_tensor(values[RULE]), {}
        for name, value in values.items():
            prefix = name.removesuffix("_left")
            if name.endswith("_bias"):
                adapters[name] = value
            elif name != prefix:
                left, right = value, values[f"{prefix}_right"]
                adapters[f"{prefix}_kernel"] = _kernel(rule, left, right)
        return adapters

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        return self.bottleneck().dropout_rates(sizes)

    def summary(self) -> str:
        sublayers = " and ".join(self.sublayers)
        return (
            f"Compacter of size {self.bottleneck_size}, n {self.n}, rank {self.rank}, "
            f"{self.activation}, after {sublayers}{self.layers_text()}"
        )


def _glorot(shape: tuple[int, int, int]) -> VariableSpec:
    deviation = math.sqrt(2.0 / (shape[1] + shape[2]))
    return VariableSpec(shape, "adapters", None, deviation, cut=False)


def _kernel(rule: tf.Tensor, left: Tensor, right: Tensor) -> tf.Tensor:
    """The sum of Kronecker products, `[inputs, outputs]`, or one for each row."""
    low_rank = tf.matmul(left, right)
    kernel = tf.einsum("...iac,...ibd->...abcd", rule, low_rank)
    n, sizes = rule.shape[-1], low_rank.shape[-2:]
    return tf.reshape(kernel, [*tf.unstack(tf.shape(rule)[:-3]), n * sizes[0], n * sizes[1]])


@module_for(CompacterConfig)
class CompacterModule(AdapterModule):
    """The bottleneck adapters of a call, with the kernels that the variables make."""

    config: CompacterConfig

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        values = self.config.bottleneck_values(self.values)
        return self.config.bottleneck().module(values, self.dropouts, self.stacked)
