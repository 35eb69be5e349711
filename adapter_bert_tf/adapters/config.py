"""What an adapter looks like and where it sits, as one immutable value."""

import dataclasses
import json
import math

from adapter_bert_tf.errors import InputError

SUBLAYERS = ("attention", "feed_forward")
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "swish", "tanh", "linear")
PLACEMENTS = ("serial", "parallel")
LARGEST_SCALE = 1e4


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _require(condition, message, received):
    if not condition:
        raise InputError(f"Adapter config: {message}. Received: {received!r}")


@dataclasses.dataclass(frozen=True)
class AdapterConfig:
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

    Raises:
      InputError: if a value is out of range.
    """

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

    def __post_init__(self):
        for name in ("sublayers", "layers"):
            value = getattr(self, name)
            _require(
                isinstance(value, list | tuple) or (name == "layers" and value is None),
                f"{name} must be a list",
                value,
            )
        # JSON has no tuples; a frozen dataclass needs `object.__setattr__` to take its lists.
        object.__setattr__(self, "sublayers", tuple(self.sublayers))
        _require(
            self.layers is None
            or (self.layers and all(_is_int(i) and i >= 0 for i in self.layers)),
            "layers must be indices from 0, or None for all layers",
            self.layers,
        )
        if self.layers is not None:
            object.__setattr__(self, "layers", tuple(sorted(set(self.layers))))
        _require(
            _is_int(self.bottleneck_size) and self.bottleneck_size > 0,
            "bottleneck_size must be a positive integer",
            self.bottleneck_size,
        )
        _require(
            self.activation in ACTIVATIONS,
            f"activation must be one of {ACTIVATIONS}",
            self.activation,
        )
        _require(
            _is_number(self.init_scale) and self.init_scale >= 0,
            "init_scale must be a number >= 0",
            self.init_scale,
        )
        _require(
            _is_number(self.dropout) and 0 <= self.dropout < 1,
            "dropout must be a number in [0, 1)",
            self.dropout,
        )
        _require(
            _is_number(self.scale) and abs(self.scale) <= LARGEST_SCALE,
            f"scale must be a number of at most {LARGEST_SCALE}",
            self.scale,
        )
        for name in ("identity_init", "normalize_input", "layer_norm"):
            _require(
                isinstance(getattr(self, name), bool),
                f"{name} must be true or false",
                getattr(self, name),
            )
        _require(
            self.sublayers
            and set(self.sublayers) <= set(SUBLAYERS)
            and len(set(self.sublayers)) == len(self.sublayers),
            f"sublayers must be some of {SUBLAYERS}, each once",
            self.sublayers,
        )
        _require(
            self.placement in PLACEMENTS, f"placement must be one of {PLACEMENTS}", self.placement
        )
        _require(_is_int(self.depth) and self.depth in (1, 2), "depth must be 1 or 2", self.depth)
        _require(
            not (self.normalize_input and self.placement == "parallel"),
            "normalize_input needs placement 'serial'",
            self.placement,
        )

    def layer_indices(self, num_layers):
        """Indices of the layers with adapters in an encoder of `num_layers` layers."""
        layers = tuple(range(num_layers)) if self.layers is None else self.layers
        _require(
            all(i < num_layers for i in layers),
            f"adapter layers must be below {num_layers}, the base's layer count",
            layers,
        )
        return layers

    def without_lowest(self, count, num_layers):
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

    def to_json(self):
        """JSON text that `from_json` turns into an equal config."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    @classmethod
    def from_json(cls, text):
        """Reads `to_json`'s text. Raises `InputError` on bad JSON and on unknown keys."""
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"The adapter config is not valid JSON: {error}") from error
        if not isinstance(values, dict):
            raise InputError(f"The adapter config must be a JSON object. Received: {values!r}")
        return cls.from_dict(values)

    @classmethod
    def from_dict(cls, values):
        """Builds a config from a plain dict. Raises `InputError` on unknown keys and bad types."""
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(values) - set(known))
        _require(not unknown, f"unknown adapter config keys; known are {known}", unknown)
        try:
            return cls(**values)
        except TypeError as error:
            raise InputError(f"Wrong type in the adapter config: {error}") from error


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


def parse_layers(text):
    """Layer indices from text such as `6-11` or `0,2,4-6`; None for the empty string."""
    if not text:
        return None
    layers = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise InputError(f"Layers are written like `6-11` or `0,2,4-6`. Received: {text!r}")
        layers.extend(range(int(first), int(last or first) + 1))
    _require(layers, "a layer range must not be empty", text)
    return tuple(layers)
