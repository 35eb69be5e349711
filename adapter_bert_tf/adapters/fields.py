"""Fields that configurations of several methods have: their checks, and the choice of layers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from adapter_bert_tf.adapters.modules import PROJECTIONS, AdapterModule, sublayers_of
from adapter_bert_tf.adapters.registry import ModuleConfig, require
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

if TYPE_CHECKING:
    from typing_extensions import Self

SUBLAYERS = tuple(PROJECTIONS)
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "swish", "tanh", "linear")
LARGEST_SCALE = 1e4
LARGEST_SIZE = 65_536
MOST_LAYERS = 256

# For the values of a field a check, and what the message asks for.
Rule = tuple[Callable[[Any], bool], str]


def is_int(value: Any) -> bool:
    """Whether a value is an integer, and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is an integer or a float, and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_bool(value: Any) -> bool:
    """Whether a value is true or false."""
    return isinstance(value, bool)


def is_size(value: Any) -> bool:
    """Whether a value is an integer from 1 to `LARGEST_SIZE`."""
    return is_int(value) and 0 < value <= LARGEST_SIZE


def are_layers(value: Any) -> bool:
    """Whether a value is None, or a list of one or more indices of layers."""
    known = isinstance(value, list | tuple) and bool(value)
    return value is None or (known and all(is_int(i) and 0 <= i < MOST_LAYERS for i in value))


def some_of(names: tuple[str, ...]) -> Rule:
    """The rule of a list of names, each once and at least one."""

    def is_right(value: Any) -> bool:
        known = isinstance(value, list | tuple) and all(name in names for name in value)
        return known and bool(value) and len(set(value)) == len(value)

    return is_right, f"a list of some of {names}, each once"


def one_of(names: tuple[str, ...]) -> Rule:
    """The rule of a name."""
    return lambda value: isinstance(value, str) and value in names, f"one of {names}"


def or_none(rule: Rule) -> Rule:
    """The rule of a value that may be None."""
    return lambda value: value is None or rule[0](value), f"{rule[1]}, or None"


BOOL: Rule = (is_bool, "true or false")
SIZE: Rule = (is_size, f"a positive integer of at most {LARGEST_SIZE}")
RATE: Rule = (lambda v: is_number(v) and 0 <= v < 1, "a number in [0, 1)")
LAYERS: Rule = (are_layers, "a list of indices from 0, or None for all layers")
FACTOR: Rule = (
    lambda v: is_number(v) and abs(v) <= LARGEST_SCALE,
    f"a number of at most {LARGEST_SCALE}",
)
DEVIATION: Rule = (
    lambda v: is_number(v) and 0 <= v <= LARGEST_SCALE,
    f"a number >= 0, at most {LARGEST_SCALE}",
)


def check_fields(title: str, config: Any, rules: Mapping[str, Rule]) -> None:
    """Raises `InputError` for a value that breaks its rule; JSON's lists become tuples."""
    for name, (is_right, message) in rules.items():
        value = getattr(config, name)
        require(title, is_right(value), f"{name} must be {message}", value)
        if isinstance(value, list):  # A frozen dataclass needs `object.__setattr__`.
            object.__setattr__(config, name, tuple(value))


def check_layers(layers: tuple[int, ...], num_layers: int) -> None:
    """Raises `InputError` for a layer that an encoder of `num_layers` layers does not have."""
    message = f"adapter layers must be below {num_layers}, the base's layer count"
    require("Adapter config", all(i < num_layers for i in layers), message, layers)


class LayeredConfig(ModuleConfig):
    """A method with variables of its own in each of some layers.

    Subclasses have a field `layers`: indices of the encoder layers, from 0; None means all.
    """

    adjustable: ClassVar[Mapping[str, tuple[str, ...]]] = {"layers": ("layers",)}
    layers: tuple[int, ...] | None

    @property
    def projections(self) -> tuple[str, ...]:
        """The projections that change in each of the layers."""
        return ()

    @property
    def changed_sublayers(self) -> tuple[str, ...]:
        return sublayers_of(self.projections)

    def sort_layers(self) -> None:
        """Sorts the field `layers`; a subclass calls it after the check of its fields."""
        if self.layers is not None:
            object.__setattr__(self, "layers", tuple(sorted(set(self.layers))))

    def layer_indices(self, num_layers: int) -> tuple[int, ...]:
        """Indices of the layers that the method changes in an encoder of `num_layers` layers."""
        layers = tuple(range(num_layers)) if self.layers is None else self.layers
        check_layers(layers, num_layers)
        return layers

    def without_lowest(self, count: int, num_layers: int) -> Self:
        layers = tuple(i for i in self.layer_indices(num_layers) if i >= count)
        message = f"no adapter is left of {num_layers} layers without the lowest"
        require("Adapter config", layers, message, count)
        return self.adjusted(layers=layers) if count else self

    def layers_text(self) -> str:
        """The chosen layers, for a summary."""
        return "" if self.layers is None else f", layers {', '.join(map(str, self.layers))}"


class LayeredModule(AdapterModule):
    """A module that changes the same projections in each of its layers."""

    config: LayeredConfig

    def projections(self, layer: int) -> tuple[str, ...]:
        layers = self.config.layers
        return self.config.projections if layers is None or layer in layers else ()


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
        message = f"a layer must be below {MOST_LAYERS}"
        require("Adapter config", last < MOST_LAYERS, message, text)
        layers.update(range(first, last + 1))
    require("Adapter config", layers, "a layer range must not be empty", text)
    return tuple(sorted(layers))
