"""Gates: how much of a method's change is used, for each text. UniPELT joins gated methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from adapter_bert_tf.adapters import fields
from adapter_bert_tf.adapters.modules import AdapterModule, Function, Projection, Sublayer
from adapter_bert_tf.adapters.ops import Tensor, dense
from adapter_bert_tf.adapters.registry import ModuleConfig, module_for, register, require
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec, projection_widths
from adapter_bert_tf.lazy import tf

NAME = "gated"
POSITIONS = "prefix"  # The place of the one gate of keys and values with more positions.
RULES: dict[str, fields.Rule] = {"gate_init_scale": fields.DEVIATION}


@register(NAME)
@dataclasses.dataclass(frozen=True)
class GatedConfig(ModuleConfig):
    """A method whose changes are multiplied by gates (Mao et al. 2022, section 3.3).

    A gate is `mean(sigmoid(x g + c))` over the positions of a text, without those of padding. x is
    what the method reads: the input of a projection, or that of an adapter. Positions of a prefix
    have one gate in each layer, which reads the input of the attention.

    Args:
      member: configuration of the method, or a dict.
      gate_init_scale: standard deviation of the normal that g is drawn from; c starts at zero.

    Raises:
      InputError: if a value is out of range, or the method is not `stackable` or has gates already.
    """

    stackable: ClassVar[bool] = True
    composite: ClassVar[bool] = True
    why_unmerged: ClassVar[str] = "a gate depends on the text"
    adjustable: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ("size", "layers", "init_scale"), ("member",)
    )

    member: ModuleConfig
    gate_init_scale: float = 0.02

    def __post_init__(self) -> None:
        given: Any = self.member
        member = ModuleConfig.from_dict(given) if isinstance(given, Mapping) else given
        known = isinstance(member, ModuleConfig) and member.stackable and not member.composite
        known = known and not member.changes_embeddings
        message = "member must be the configuration of one method such as LoRA"
        require("Gated config", known, message, given)
        object.__setattr__(self, "member", member)
        fields.check_fields("Gated config", self, RULES)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """The member's variables, and `adapters/layer_I/PLACE/gate_kernel` and `gate_bias`."""
        specs = self.member.specs(sizes)
        gates: dict[str, VariableSpec] = {}
        for layer, place in dict.fromkeys(self._places(specs)):
            width, prefix = projection_widths(place, sizes)[0], f"adapters/layer_{layer}/{place}"
            gates[f"{prefix}/gate_kernel"] = VariableSpec(
                (width, 1), "adapters", layer, self.gate_init_scale, cut=False, is_gate=True
            )
            gates[f"{prefix}/gate_bias"] = VariableSpec((1,), "adapters", layer, is_gate=True)
        return specs | gates

    def _places(self, specs: Mapping[str, VariableSpec]) -> Iterator[tuple[int, str]]:
        """The layer and the name of each gate, of variables `adapters/layer_I/PLACE/VARIABLE`."""
        for name, spec in specs.items():
            if spec.layer is not None:
                yield spec.layer, self.place_of(name.split("/")[2])

    def place_of(self, name: str) -> str:
        """The gate of a sublayer or a projection."""
        return POSITIONS if self.adds_positions else name

    @property
    def adds_positions(self) -> bool:
        return self.member.adds_positions

    @property
    def factors(self) -> tuple[str, ...]:
        return self.member.factors

    @property
    def learning_rate(self) -> float | None:
        return self.member.learning_rate

    @property
    def changed_sublayers(self) -> tuple[str, ...]:
        return self.member.changed_sublayers

    @property
    def layers(self) -> tuple[int, ...] | None:
        """The layers that the member names."""
        return getattr(self.member, "layers", None)

    def adjusted(self, **values: Any) -> GatedConfig:
        return self._with(self.member.adjusted(**values))

    def adjusted_like(self, other: ModuleConfig, names: Collection[str]) -> GatedConfig:
        if not isinstance(other, GatedConfig):
            return self
        return self._with(self.member.adjusted_like(other.member, names))

    def without_lowest(self, count: int, num_layers: int) -> GatedConfig:
        return self._with(self.member.without_lowest(count, num_layers))

    def stored_config(self) -> GatedConfig:
        return self._with(self.member.stored_config())

    def _with(self, member: ModuleConfig) -> GatedConfig:
        return dataclasses.replace(self, member=member)

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        return self.member.dropout_rates(sizes)

    def sizes(self, num_layers: int) -> tuple[int, ...]:
        return self.member.sizes(num_layers)

    def stored_values(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return self.member.stored_values(values)

    def weighted_sum(
        self, values: Sequence[Mapping[str, np.ndarray]], shares: Sequence[float]
    ) -> tuple[GatedConfig, dict[str, np.ndarray]] | None:
        """That of the method, before its gates."""
        summed = self.member.weighted_sum(values, shares)
        return summed and (self._with(summed[0]), summed[1])

    def summary(self) -> str:
        return f"gated {self.member.summary()}"


@module_for(GatedConfig)
class GatedModule(AdapterModule):
    """The module of the member, whose changes it multiplies by gates."""

    config: GatedConfig

    def __init__(
        self,
        config: GatedConfig,
        values: Mapping[str, Tensor] | None = None,
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
        member: AdapterModule | None = None,
    ) -> None:
        super().__init__(config, values, dropouts, stacked)
        self.member = member or config.member.module(self.values, self.dropouts, stacked)

    @property
    def reads_all_positions(self) -> bool:
        return True

    def for_call(self, inputs: Mapping[str, tf.Tensor]) -> AdapterModule:
        member = self.member.for_call(inputs)
        return GatedModule(self.config, self.values, self.dropouts, self.stacked, member)

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        place, unchanged = f"layer_{sublayer.layer}/{sublayer.name}", sublayer.unchanged()
        if f"adapters/{place}/gate_kernel" not in self.values:
            return self.member.adapt_sublayer(sublayer)
        change = self.member.adapt_sublayer(sublayer) - unchanged
        x = tf.cast(self.member.sublayer_input(sublayer), sublayer.output.dtype)
        return unchanged + self._gate(place, x, sublayer.mask, change.dtype) * change

    def projections(self, layer: int) -> Collection[str]:
        return self.member.projections(layer)

    def adapt_projection(self, projection: Projection) -> tf.Tensor:
        place = f"layer_{projection.layer}/{self.config.place_of(projection.name)}"
        before, after = projection.output, self.member.adapt_projection(projection)
        gate = self._gate(place, projection.input, projection.mask, before.dtype)
        if self.config.adds_positions:
            count = tf.shape(after)[1] - tf.shape(before)[1]
            return tf.concat([gate * after[:, :count], before], 1)
        return before + gate * (after - before)

    def _gate(self, place: str, x: tf.Tensor, mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        """The gate of each row, `[batch, 1, 1]`, from x `[batch, seq, size]`."""
        with tf.name_scope(f"{place}/gate"):
            kernel, bias = (
                tf.cast(self.values[f"adapters/{place}/gate_{part}"], x.dtype)
                for part in ("kernel", "bias")
            )
            gates = tf.sigmoid(tf.cast(dense(x, kernel, bias, self.stacked), tf.float32))
            is_text = tf.cast(tf.reduce_max(mask, 1), tf.float32)[:, :, tf.newaxis]
            total = tf.reduce_sum(gates * is_text, 1, keepdims=True)
            # Rows that fill a batch have no text.
            mean = tf.math.divide_no_nan(total, tf.reduce_sum(is_text, 1, keepdims=True))
            return tf.cast(mean, dtype)
