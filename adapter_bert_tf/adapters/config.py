"""Configuration of bottleneck adapters, and presets of published ones."""

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from adapter_bert_tf.adapters.registry import DEFAULT_KIND, ModuleConfig, register, require
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

SUBLAYERS = ("attention", "feed_forward")
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "swish", "tanh", "linear")
PLACEMENTS = ("serial", "parallel")
OUTPUT_NORM = "output_layer_norm"  # What the variables of `normalize_output` are called.
LARGEST_SCALE = 1e4
LARGEST_SIZE = 65_536
MOST_LAYERS = 256


_require = functools.partial(require, "Adapter config")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _are_sublayers(value: Any) -> bool:
    known = isinstance(value, list | tuple) and all(name in SUBLAYERS for name in value)
    return known and bool(value) and len(set(value)) == len(value)


def _are_layers(value: Any) -> bool:
    known = isinstance(value, list | tuple) and bool(value)
    return value is None or (known and all(_is_int(i) and 0 <= i < MOST_LAYERS for i in value))


def _is_size(value: Any) -> bool:
    return _is_int(value) and 0 < value <= LARGEST_SIZE


def _are_layer_sizes(value: Any) -> bool:
    pairs = isinstance(value, tuple) and all(isinstance(v, tuple) and len(v) == 2 for v in value)
    if not pairs:
        return False
    layers = tuple(layer for layer, _ in value)
    known = not layers or (_are_layers(layers) and len(set(layers)) == len(layers))
    return known and all(_is_size(size) for _, size in value)


def _layer_index(key: Any) -> Any:
    """A key of a JSON object as a layer index, if it is one."""
    return int(key) if isinstance(key, str) and re.fullmatch("[0-9]{1,9}", key) else key


# For each field a check, and what the message asks for.
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bottleneck_size": (_is_size, f"a positive integer of at most {LARGEST_SIZE}"),
    "activation": (lambda v: v in ACTIVATIONS, f"one of {ACTIVATIONS}"),
    "init_scale": (
        lambda v: _is_number(v) and 0 <= v <= LARGEST_SCALE,
        f"a number >= 0, at most {LARGEST_SCALE}",
    ),
    "identity_init": (_is_bool, "true or false"),
    "dropout": (lambda v: _is_number(v) and 0 <= v < 1, "a number in [0, 1)"),
    "scale": (
        lambda v: _is_number(v) and abs(v) <= LARGEST_SCALE,
        f"a number of at most {LARGEST_SCALE}",
    ),
    "sublayers": (_are_sublayers, f"a list of some of {SUBLAYERS}, each once"),
    "layers": (_are_layers, "a list of indices from 0, or None for all layers"),
    "placement": (lambda v: v in PLACEMENTS, f"one of {PLACEMENTS}"),
    "normalize_input": (_is_bool, "true or false"),
    "layer_norm": (_is_bool, "true or false"),
    "depth": (lambda v: _is_int(v) and v in (1, 2), "1 or 2"),
    "normalize_output": (_is_bool, "true or false"),
    "layer_sizes": (
        _are_layer_sizes,
        f"an object from layers, from 0, to sizes of at most {LARGEST_SIZE}",
    ),
}
# Fields that earlier versions do not have. A value of no effect is not written.
LATER_FIELDS = ("normalize_output", "layer_sizes")


@register(DEFAULT_KIND)
@dataclasses.dataclass(frozen=True)
class AdapterConfig(ModuleConfig):
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
        for name, (is_right, message) in RULES.items():
            value = getattr(self, name)
            _require(is_right(value), f"{name} must be {message}", value)
        object.__setattr__(self, "sublayers", tuple(self.sublayers))
        if self.layers is not None:
            object.__setattr__(self, "layers", tuple(sorted(set(self.layers))))
        other_sizes = tuple(
            (layer, size)
            for layer, size in sorted(dict(self.layer_sizes).items())
            if size != self.bottleneck_size and (self.layers is None or layer in self.layers)
        )
        object.__setattr__(self, "layer_sizes", other_sizes)
        _require(
            not (self.normalize_input and self.placement == "parallel"),
            "normalize_input needs placement 'serial'",
            self.placement,
        )

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

    def size_of(self, layer: int) -> int:
        """The bottleneck size in a layer."""
        return dict(self.layer_sizes).get(layer, self.bottleneck_size)

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
        return (
            f"size {self.sizes_text()}, {self.activation}, {self.placement}, "
            f"after {' and '.join(self.sublayers)}"
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
        """Indices of the layers with adapters in an encoder of `num_layers` layers."""
        layers = tuple(range(num_layers)) if self.layers is None else self.layers
        named = (*layers, *dict(self.layer_sizes))
        _require(
            all(i < num_layers for i in named),
            f"adapter layers must be below {num_layers}, the base's layer count",
            named,
        )
        return layers

    def without_lowest(self, count: int, num_layers: int) -> "AdapterConfig":
        layers = tuple(i for i in self.layer_indices(num_layers) if i >= count)
        _require(layers, f"no adapter is left of {num_layers} layers without the lowest", count)
        return dataclasses.replace(self, layers=layers) if count else self


PRESETS = {
    # Houlsby et al. 2019: an adapter after both sublayers, tanh-GELU, size 64.
    "houlsby": AdapterConfig(),
    # The same with the initial values of the original code: both kernels near zero.
    "adapter_bert": AdapterConfig(init_scale=1e-3, identity_init=False),
    # Pfeiffer et al. 2021 (AdapterFusion): one adapter a layer, after the feed-forward sublayer.
    "pfeiffer": AdapterConfig(activation="relu", sublayers=("feed_forward",), normalize_input=True),
    # He et al. 2022, section 4: parallel to the feed-forward sublayer instead of after it; their
    # best one is scaled by 4.
    "parallel": AdapterConfig(activation="relu", sublayers=("feed_forward",), placement="parallel"),
    "scaled_parallel": AdapterConfig(
        activation="relu", sublayers=("feed_forward",), placement="parallel", scale=4.0
    ),
}


def parse_layers(text: str | None) -> tuple[int, ...] | None:
    """Layer indices from text such as `6-11` or `0,2,4-6`; None for the empty string."""
    if not text:
        return None
    layers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part.strip())
        if not match:
            raise InputError(
                f"Layers are written like `6-11` or `0,2,4-6`. Received: {preview(text)}"
            )
        first, last = int(match[1]), int(match[2] or match[1])
        _require(last < MOST_LAYERS, f"a layer must be below {MOST_LAYERS}", text)
        layers.update(range(first, last + 1))
    _require(layers, "a layer range must not be empty", text)
    return tuple(sorted(layers))
