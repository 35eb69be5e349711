"""(IA)^3: trained vectors that rescale projections of the base."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from adapter_bert_tf.adapters import fields
from adapter_bert_tf.adapters.modules import PROJECTIONS, DenseChange, Projection
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.adapters.registry import module_for, register
from adapter_bert_tf.adapters.variable_specs import (
    Sizes,
    VariableSpec,
    dense_path,
    projection_widths,
)
from adapter_bert_tf.lazy import tf

HEADS = ("query", "key", "value")  # Their kernels are `[hidden, heads, size]`.
RULES: dict[str, fields.Rule] = {
    "projections": fields.some_of(tuple(n for names in PROJECTIONS.values() for n in names)),
    "layers": fields.LAYERS,
}


@register("ia3")
@dataclasses.dataclass(frozen=True)
class Ia3Config(fields.LayeredConfig):
    """(IA)^3 (Liu et al. 2022, section 3.3): a vector by which a projection is multiplied.

    The vectors start at one, so the model starts as the base. The defaults are those of the paper:
    keys, values, and the activation between the two dense layers of the feed-forward sublayer.

    Args:
      projections: what is multiplied, of `modules.PROJECTIONS`; one vector in each layer. A
        dense layer's output is multiplied with its bias.
      layers: indices of the encoder layers that change, from 0; None means all.

    Raises:
      InputError: if a value is out of range.
    """

    stackable: ClassVar[bool] = True
    why_unmerged: ClassVar[str] = ""
    learning_rate: ClassVar[float | None] = 3e-3  # Vectors of ones move further than kernels.

    projections: tuple[str, ...] = ("key", "value", "activation")
    layers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        fields.check_fields("(IA)^3 config", self, RULES)
        self.sort_layers()

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """Variables `adapters/layer_I/PROJECTION/scale`, lowest layer first."""
        return {
            f"adapters/layer_{i}/{name}/scale": VariableSpec(
                (projection_widths(name, sizes)[1],), "adapters", i, "ones"
            )
            for i in self.layer_indices(sizes["num_layers"])
            for name in self.projections
        }

    def merged(
        self, values: Mapping[str, np.ndarray], base: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The dense layers with scaled outputs; the one after an activation with scaled inputs."""
        changed: dict[str, np.ndarray] = {}
        for name in (name for name in values if name.endswith("/scale")):
            _, layer, projection, _ = name.split("/")
            index, scale = int(layer.removeprefix("layer_")), values[name].astype(np.float64)
            variables: tuple[str, ...]
            if projection == "activation":
                variables, scale = (f"{dense_path(index, 'output')}/kernel",), scale[:, np.newaxis]
            else:
                path = dense_path(index, projection)
                variables = (f"{path}/kernel", f"{path}/bias")
            for variable in variables:
                value = changed.get(variable, base[variable])
                # Queries, keys and values have their heads in axes of their own.
                flat = value.reshape(-1, scale.size) if projection in HEADS else value
                changed[variable] = (flat * scale).reshape(value.shape).astype(np.float32)
        return changed

    def summary(self) -> str:
        return f"(IA)^3 on {', '.join(self.projections)}{self.layers_text()}"


@module_for(Ia3Config)
class Ia3Module(fields.LayeredModule):
    """Multiplies each position of a projection by its vector."""

    config: Ia3Config

    def adapt_projection(self, projection: Projection) -> tf.Tensor:
        place = f"layer_{projection.layer}/{projection.name}"
        with tf.name_scope(place):
            scale = tf.cast(self.values[f"adapters/{place}/scale"], projection.output.dtype)
            return projection.output * (scale[:, tf.newaxis] if self.stacked == ROWS else scale)

    def dense_changes(self, layer: int) -> dict[str, DenseChange]:
        if self.stacked:
            return {}
        return {
            name: DenseChange(scale=self.values[f"adapters/layer_{layer}/{name}/scale"])
            for name in self.projections(layer)
            if name != "activation"
        }
