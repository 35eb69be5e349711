"""Configuration of bottleneck adapters."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from adapter_bert_tf.adapters import fields
from adapter_bert_tf.adapters.fields import ACTIVATIONS, LARGEST_SIZE, SUBLAYERS, Rule
from adapter_bert_tf.adapters.registry import DEFAULT_KIND, register, require
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec

PLACEMENTS = ("serial", "parallel")
OUTPUT_NORM = "output_layer_norm"  # What the variables of `normalize_output` are called.


def _are_layer_sizes(value: Any) -> bool:
    pairs = isinstance(value, tuple) and all(isinstance(v, tuple) and len(v) == 2 for v in value)
    if not pairs:
        return False
    layers = tuple(layer for layer, _ in value)
    known = not layers or (fields.are_layers(layers) and len(set(layers)) == len(layers))
    return known and all(fields.is_size(size) for _, size in value)


def _layer_index(key: Any) -> Any:
    """A key of a JSON object as a layer index, if it is one."""
    return int(key) if isinstance(key, str) and re.fullmatch("[0-9]{1,9}", key) else key


RULES: dict[str, Rule] = {
    "bottleneck_size": fields.SIZE,
    "activation": fields.one_of(ACTIVATIONS),
    "init_scale": fields.DEVIATION,
    "identity_init": fields.BOOL,
    "dropout": fields.RATE,
    "scale": fields.FACTOR,
    "sublayers": fields.some_of(SUBLAYERS),
    "layers": fields.LAYERS,
    "placement": fields.one_of(PLACEMENTS),
    "normalize_input": fields.BOOL,
    "layer_norm": fields.BOOL,
    "depth": (lambda v: fields.is_int(v) and v in (1, 2), "1 or 2"),
    "normalize_output": fields.BOOL,
    "layer_sizes": (
        _are_layer_sizes,
        f"an object from layers, from 0, to sizes of at most {LARGEST_SIZE}",
    ),
}
# Fields that earlier versions do not have. A value of no effect is not written.
LATER_FIELDS = ("normalize_output", "layer_sizes")


@register(DEFAULT_KIND)
@dataclasses.dataclass(frozen=True)
class AdapterConfig(fields.LayeredConfig):
    """Bottleneck adapters: their sizes, initial values and positions.

    The defaults are those of Houlsby et al. 2019 (section 2.1 and Figure 2), except the initial
    values: see `identity_init`, and docs/defaults.md for measurements.

    Args:
      bottleneck_size: width m of the bottleneck; an adapter has 2md + d + m parameters.
      activation: one of `ACTIVATIONS`. `gelu` is Google's tanh form, `gelu_erf` the exact one.
      init_scale: standard deviation of the truncated normal (cut at two sigma) that the kernels
        are drawn from; biases start at zero.
      identity_init: the up kernel starts at zero instead, so that the adapter starts as exactly the
        identity on every base. Without it a small `init_scale` starts near the identity.
      dropout: rate applied to the adapter's output before it is added.
      scale: factor on the adapter's output (He et al. 2022 scale parallel adapters).
      sublayers: after which sublayers an adapter is inserted, of `SUBLAYERS`.
      layers: indices of the encoder layers that get adapters, from 0; `None` means all.
      placement: `serial` reads the sublayer's output, `parallel` the sublayer's input.
      normalize_input: the serial adapter reads LayerNorm(residual + sublayer output) instead of
        the bare sublayer output, with the block's own LayerNorm (Pfeiffer et al. 2021).
      layer_norm: the adapter's input goes through a LayerNorm of its own, with 2d parameters (a
        variation of Houlsby et al. 2019, section 3.6; so is `depth`).
      depth: number of layers at the bottleneck's width; 2 adds an m x m layer, m^2 + m parameters.
      normalize_output: the bottleneck's result goes through a LayerNorm of its own before it is
        added (Mahabadi et al. 2021, equation 1), with 2d parameters. With `identity_init` its gamma
        starts at zero instead of the up kernel: the LayerNorm of zeros multiplies gradients by 316.
      layer_sizes: dict from the index of a layer to its bottleneck size, for the layers whose size
        is not `bottleneck_size`. It becomes a tuple of pairs; layers without adapters are left out.

    Raises:
      InputError: if a value is out of range.
    """

    stackable: ClassVar[bool] = True
    why_unmerged: ClassVar[str] = "an adapter has an activation between its two kernels"
    adjustable: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "size": ("bottleneck_size", "layer_sizes"),
        "layers": ("layers",),
        "init_scale": ("init_scale",),
    }

    bottleneck_size: int = 64
    activation: str = "gelu"
    init_scale: float = 0.02
    identity_init: bool = True
    dropout: float = 0.0
    scale: float = 1.0
    sublayers: tuple[str, ...] = SUBLAYERS
    layers: tuple[int, ...] | None = None
    placement: str = "serial"
    normalize_input: bool = False
    layer_norm: bool = False
    depth: int = 1
    normalize_output: bool = False
    layer_sizes: Mapping[int, int] | tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        # JSON has lists and objects; a frozen dataclass needs `object.__setattr__`.
        if isinstance(self.layer_sizes, Mapping):
            pairs = tuple((_layer_index(key), size) for key, size in self.layer_sizes.items())
            object.__setattr__(self, "layer_sizes", pairs)
        fields.check_fields("Adapter config", self, RULES)
        self.sort_layers()
        other_sizes = tuple(
            (layer, size)
            for layer, size in sorted(dict(self.layer_sizes).items())
            if size != self.bottleneck_size and (self.layers is None or layer in self.layers)
        )
        object.__setattr__(self, "layer_sizes", other_sizes)
        fits = not (self.normalize_input and self.placement == "parallel")
        message = "normalize_input needs placement 'serial'"
        require("Adapter config", fits, message, self.placement)

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """Variables `adapters/layer_I/SUBLAYER/VARIABLE`, lowest layer first."""
        return {
            f"adapters/layer_{i}/{sublayer}/{name}": VariableSpec(
                shape, "adapters", i, self._start(name)
            )
            for i in self.layer_indices(sizes["num_layers"])
            for sublayer in self.sublayers
            for name, shape in self.variable_shapes(sizes["hidden_size"], i).items()
        }

    @property
    def changed_sublayers(self) -> tuple[str, ...]:
        return self.sublayers

    def size_of(self, layer: int) -> int:
        """The bottleneck size in a layer."""
        return dict(self.layer_sizes).get(layer, self.bottleneck_size)

    def sizes(self, num_layers: int) -> tuple[int, ...]:
        return tuple(self.size_of(i) for i in self.layer_indices(num_layers))

    def variable_shapes(
        self, hidden_size: int, layer: int | None = None
    ) -> dict[str, tuple[int, ...]]:
        """Dict from the names of one adapter's variables to their shapes; None: in most layers."""
        size = self.bottleneck_size if layer is None else self.size_of(layer)
        shapes: dict[str, tuple[int, ...]] = {
            "down_kernel": (hidden_size, size),
            "down_bias": (size,),
            "up_kernel": (size, hidden_size),
            "up_bias": (hidden_size,),
        }
        if self.depth == 2:
            shapes |= {"middle_kernel": (size, size), "middle_bias": (size,)}
        norms = {"layer_norm": self.layer_norm, OUTPUT_NORM: self.normalize_output}
        for name in (name for name, is_used in norms.items() if is_used):
            shapes |= {f"{name}_gamma": (hidden_size,), f"{name}_beta": (hidden_size,)}
        return shapes

    def _start(self, name: str) -> str | float:
        last = f"{OUTPUT_NORM}_gamma" if self.normalize_output else "up_kernel"
        if name == last and self.identity_init:
            return "zeros"
        if name.endswith("gamma"):
            return "ones"
        return self.init_scale if name.endswith("kernel") else "zeros"

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        if not self.dropout:
            return {}
        return {name.rpartition("/")[0]: self.dropout for name in self.specs(sizes)}

    def summary(self) -> str:
        further = {
            "two layers deep": self.depth == 2,
            f"scaled by {self.scale:g}": self.scale != 1,
            "reading the block's LayerNorm": self.normalize_input,
            "with a LayerNorm at its input": self.layer_norm,
            "with a LayerNorm at its output": self.normalize_output,
        }
        return (
            f"size {self.sizes_text()}, {self.activation}, {self.placement}, "
            f"after {' and '.join(self.sublayers)}"
            f"{''.join(f', {text}' for text, applies in further.items() if applies)}"
            f"{self.layers_text()}"
        )

    def sizes_text(self) -> str:
        """The bottleneck size, and those of layers with another."""
        sizes = dict(self.layer_sizes).items()
        others = ", ".join(f"layer {layer}: {size}" for layer, size in sizes)
        return f"{self.bottleneck_size}{f' ({others})' if others else ''}"

    def to_dict(self) -> dict[str, Any]:
        """As in `ModuleConfig`, without `LATER_FIELDS` that have no effect."""
        values = super().to_dict()
        values["layer_sizes"] = {str(layer): size for layer, size in dict(self.layer_sizes).items()}
        return {k: value for k, value in values.items() if value or k not in LATER_FIELDS}

    def layer_indices(self, num_layers: int) -> tuple[int, ...]:
        fields.check_layers(tuple(dict(self.layer_sizes)), num_layers)
        return super().layer_indices(num_layers)
