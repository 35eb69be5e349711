"""What an adapter looks like and where it sits, as one immutable value."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from adapter_bert_tf.adapters.methods.bottleneck import BottleneckModule, variable_shapes
from adapter_bert_tf.adapters.modules import AdapterModule, Function
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.registry import UNNAMED, ModuleConfig, register
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

SUBLAYERS = ("attention", "feed_forward")
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "swish", "tanh", "linear")
PLACEMENTS = ("serial", "parallel")
LARGEST_SCALE = 1e4
LARGEST_SIZE = 65_536
DEEPEST = 256  # Layers of the deepest base that is read, and some room.


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
    if value is None:
        return True
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(_is_int(i) and 0 <= i < DEEPEST for i in value)
    )


def _require(condition: Any, message: str, received: Any) -> None:
    if not condition:
        raise InputError(f"Adapter config: {message}. Received: {preview(received)}")


# What each field must be.
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bottleneck_size": (
        lambda v: _is_int(v) and 0 < v <= LARGEST_SIZE,
        f"a positive integer of at most {LARGEST_SIZE}",
    ),
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
}


@register(UNNAMED)
@dataclasses.dataclass(frozen=True)
class AdapterConfig(ModuleConfig):
    """One bottleneck adapter a sublayer: sizes, initialization and place.

    The defaults are those of Houlsby et al. 2019 (section 2.1 and Figure 2), but for the start: see
    `identity_init`, and docs/design.md for what we saw.

    Args:
      bottleneck_size: width m of the bottleneck; an adapter has 2md + d + m parameters.
      activation: one of `ACTIVATIONS`. `gelu` is Google's tanh form, `gelu_erf` the exact one.
      init_scale: standard deviation of the truncated normal (cut at two sigma) that the kernels
        are drawn from; biases start at zero.
      identity_init: the up kernel starts at zero instead, so that the adapter starts as exactly the
        identity, whatever the base. Without it a small `init_scale` makes it nearly so.
      dropout: rate applied to the adapter's output before it is added.
      scale: factor on the adapter's output (He et al. 2022 scale parallel adapters).
      sublayers: after which sublayers an adapter is inserted, of `SUBLAYERS`.
      layers: indices of the encoder layers that get adapters, from 0; `None` means all.
      placement: `serial` reads the sublayer's output, `parallel` the sublayer's input.
      normalize_input: the serial adapter reads LayerNorm(residual + sublayer output) instead of
        the bare sublayer output, with the block's own LayerNorm (Pfeiffer et al. 2021).
      layer_norm: the adapter normalizes what it reads with a LayerNorm of its own, of 2d more
        parameters (a variation of Houlsby et al. 2019, section 3.6, as is the next).
      depth: number of layers at the bottleneck's width; 2 adds an m x m layer, m^2 + m parameters.
      normalize_output: the bottleneck's result goes through a LayerNorm of the adapter's own before
        it is added (Mahabadi et al. 2021, equation 1), of 2d more parameters. With `identity_init`
        its gamma starts at zero, and not the up kernel: over a result of zeros a LayerNorm
        multiplies gradients by 316.

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

    def __post_init__(self) -> None:
        for name, (is_right, message) in RULES.items():
            value = getattr(self, name)
            _require(is_right(value), f"{name} must be {message}", value)
        # JSON has no tuples; a frozen dataclass needs `object.__setattr__` to take its lists.
        object.__setattr__(self, "sublayers", tuple(self.sublayers))
        if self.layers is not None:
            object.__setattr__(self, "layers", tuple(sorted(set(self.layers))))
        _require(
            not (self.normalize_input and self.placement == "parallel"),
            "normalize_input needs placement 'serial'",
            self.placement,
        )

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """As `PartsConfig.specs`: `adapters/layer_I/SUBLAYER/VARIABLE`, lowest layer first."""
        shapes = variable_shapes(self, sizes["hidden_size"])
        return {
            f"adapters/layer_{i}/{sublayer}/{name}": VariableSpec(
                shape, "adapters", i, self._start(name)
            )
            for i in self.layer_indices(sizes["num_layers"])
            for sublayer in self.sublayers
            for name, shape in shapes.items()
        }

    def _start(self, name: str) -> str | float:
        last = "output_layer_norm_gamma" if self.normalize_output else "up_kernel"
        if name == last and self.identity_init:
            return "zeros"
        if name.endswith("gamma"):
            return "ones"
        return self.init_scale if name.endswith("kernel") else "zeros"

    def parts(
        self,
        values: Mapping[str, Tensor],
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
    ) -> AdapterModule:
        """As `PartsConfig.parts`."""
        return BottleneckModule(self, values, dropouts, stacked)

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        """One dropout for each adapter, if it has any."""
        if not self.dropout:
            return {}
        return {name.rpartition("/")[0]: self.dropout for name in self.specs(sizes)}

    def summary(self) -> str:
        """As `PartsConfig.summary`."""
        return (
            f"size {self.bottleneck_size}, {self.activation}, {self.placement}, "
            f"after {' and '.join(self.sublayers)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """As `PartsConfig.to_dict`; `normalize_output` only if so, as files of before had none."""
        values = super().to_dict()
        if not self.normalize_output:
            del values["normalize_output"]
        return values

    def layer_indices(self, num_layers: int) -> tuple[int, ...]:
        """Indices of the layers with adapters in an encoder of `num_layers` layers."""
        layers = tuple(range(num_layers)) if self.layers is None else self.layers
        _require(
            all(i < num_layers for i in layers),
            f"adapter layers must be below {num_layers}, the base's layer count",
            layers,
        )
        return layers

    def without_lowest(self, count: int, num_layers: int) -> "AdapterConfig":
        """Without the adapters of the lowest layers (AdapterDrop, Rücklé et al. 2021).

        Args:
          count: number of lowest layers of the encoder that get none.
          num_layers: number of layers of the encoder.

        Raises:
          InputError: when no adapter is left.
        """
        kept = tuple(i for i in self.layer_indices(num_layers) if i >= count)
        _require(kept, f"no adapter is left of {num_layers} layers without the lowest", count)
        return dataclasses.replace(self, layers=kept) if count else self


PRESETS = {
    # Houlsby et al. 2019: an adapter after both sublayers, tanh-GELU, size 64.
    "houlsby": AdapterConfig(),
    # The same, started as the original code starts it: both kernels near zero.
    "adapter_bert": AdapterConfig(init_scale=1e-3, identity_init=False),
    # Pfeiffer et al. 2021 (AdapterFusion): one adapter a layer, after the feed-forward sublayer.
    "pfeiffer": AdapterConfig(activation="relu", sublayers=("feed_forward",), normalize_input=True),
    # He et al. 2022, section 4: beside the feed-forward sublayer instead of after it; their best
    # one is scaled by 4.
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
        found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part.strip())
        if not found:
            raise InputError(
                f"Layers are written like `6-11` or `0,2,4-6`. Received: {preview(text)}"
            )
        first, last = int(found[1]), int(found[2] or found[1])
        _require(last < DEEPEST, f"a layer must be below {DEEPEST}", text)
        layers.update(range(first, last + 1))
    _require(layers, "a layer range must not be empty", text)
    return tuple(sorted(layers))
