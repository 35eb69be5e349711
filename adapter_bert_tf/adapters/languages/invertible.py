"""Invertible adapters at the embeddings: the change of a language's vocabulary in MAD-X."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from adapter_bert_tf.adapters import fields
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS, dense
from adapter_bert_tf.adapters.registry import ModuleConfig, module_for, register, require
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec
from adapter_bert_tf.lazy import tf

PLACE = "adapters/embeddings"
RULES: dict[str, fields.Rule] = {
    "reduction": fields.SIZE,
    "activation": fields.one_of(fields.ACTIVATIONS),
    "init_scale": fields.DEVIATION,
    "identity_init": fields.BOOL,
}


@register("invertible")
@dataclasses.dataclass(frozen=True)
class InvertibleConfig(ModuleConfig):
    """An invertible adapter (Pfeiffer et al. 2020, MAD-X, arXiv 2005.00052, section 4.3).

    The embeddings, after their LayerNorm and dropout, are cut into halves `x1` and `x2`, the first
    the smaller one of an odd size, and coupled as in NICE (Dinh et al. 2015):

        y1 = x1 + F(x2)        y2 = x2 + G(y1)

    A language-model head undoes this before its decoder, which is tied to the embeddings; no other
    head does. F and G are bottlenecks, in float32 in every precision.

    Args:
      reduction: their inputs' width divided by that of their bottlenecks, rounded down.
      activation: one of `ACTIVATIONS`.
      init_scale: standard deviation of the truncated normal that kernels are drawn from.
      identity_init: the up kernels start at zero instead, so that the model starts as the base.
        AdapterHub draws both kernels.

    Raises:
      InputError: if a value is out of range.
    """

    stackable: ClassVar[bool] = True
    why_unmerged: ClassVar[str] = "an invertible adapter has an activation between its two kernels"
    adjustable: ClassVar[Mapping[str, tuple[str, ...]]] = {"init_scale": ("init_scale",)}

    reduction: int = 2
    activation: str = "relu"
    init_scale: float = 0.02
    identity_init: bool = True

    def __post_init__(self) -> None:
        fields.check_fields("Invertible adapter config", self, RULES)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """Variables `adapters/embeddings/F/VARIABLE` and of G, as a bottleneck has them."""
        hidden = sizes["hidden_size"]
        first, second = hidden // 2, hidden - hidden // 2
        message = f"reduction must be at most {first}, half of the base's hidden size"
        require("Invertible adapter config", self.reduction <= first, message, self.reduction)
        up = 0.0 if self.identity_init else self.init_scale
        specs: dict[str, VariableSpec] = {}
        for name, inputs, outputs in (("F", second, first), ("G", first, second)):
            inner = inputs // self.reduction
            for variable, shape, start in (
                ("down_kernel", (inputs, inner), self.init_scale),
                ("down_bias", (inner,), 0.0),
                ("up_kernel", (inner, outputs), up),
                ("up_bias", (outputs,), 0.0),
            ):
                spec = VariableSpec(shape, "adapters", start=start or "zeros")
                specs[f"{PLACE}/{name}/{variable}"] = spec
        return specs

    @property
    def changes_embeddings(self) -> bool:
        return True

    def without_lowest(self, count: int, num_layers: int) -> InvertibleConfig:
        return self

    def summary(self) -> str:
        return f"an invertible adapter at the embeddings, reduction {self.reduction}"


@module_for(InvertibleConfig)
class InvertibleModule(AdapterModule):
    """The coupling of the two halves of the embeddings, and its inverse."""

    config: InvertibleConfig

    def adapt_embeddings(self, x: tf.Tensor) -> tf.Tensor:
        x1, x2 = _halves(x)
        x1 += self._change("F", x2)
        x2 += self._change("G", x1)
        return tf.concat([x1, x2], -1)

    def invert(self, x: tf.Tensor) -> tf.Tensor:
        x1, x2 = _halves(x)
        x2 -= self._change("G", x1)
        x1 -= self._change("F", x2)
        return tf.concat([x1, x2], -1)

    def _change(self, name: str, x: tf.Tensor) -> tf.Tensor:
        for part, activation in (("down", self.config.activation), ("up", "linear")):
            kernel, bias = (self.values[f"{PLACE}/{name}/{part}_{v}"] for v in ("kernel", "bias"))
            x = ACTIVATION_FUNCTIONS[activation](dense(x, kernel, bias, self.stacked))
        return x


def _halves(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The halves of the last axis in float32; the first is the smaller one of an odd size."""
    x, first = tf.cast(x, tf.float32), x.shape[-1] // 2
    return x[..., :first], x[..., first:]
