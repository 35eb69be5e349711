"""Kinds of parts: what a configuration of one must say, and how it travels."""

import copy
import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import tf_keras

from adapter_bert_tf.adapters.modules import AdapterModule, Function
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec, declare_groups
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import parse_json, preview

if TYPE_CHECKING:
    from typing_extensions import Self

MODULE_KINDS: dict[str, type["ModuleConfig"]] = {}
UNNAMED = "bottleneck"  # The kind of a dict that names none, as all did before there were others.


class ModuleConfig:
    """The configuration of what runs beside the base: one frozen dataclass a kind.

    It travels as one value through flags, `run.json`, adapter directory and SavedModel.

    Attributes:
      kind: its name in files.
      groups: of its variables, in the order of the report.
      stackable: whether rows of one batch may each have values of their own.
      borrowed: those of its groups whose values are other adapters'; their files are kept beside
        its own, and hold them.
    """

    kind: ClassVar[str]
    groups: ClassVar[tuple[str, ...]] = ("adapters",)
    stackable: ClassVar[bool] = False
    borrowed: ClassVar[tuple[str, ...]] = ()

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """Dict from common name to `Spec` of all its variables. Raises `InputError`."""
        raise NotImplementedError

    def parts(
        self,
        values: Mapping[str, Tensor],
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
    ) -> AdapterModule:
        """The parts that compute with values.

        Args:
          values: dict from the names of `specs` to variables or tensors; others are ignored.
          dropouts: dict from the names of `dropout_rates` to functions; None while not training.
          stacked: `ops.ROWS` if all values have a leading `[batch]`; only if `stackable`.
        """
        raise NotImplementedError

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        """Dict from a name to the rate of a dropout that it needs in training."""
        return {}

    def new_dropouts(self, sizes: Sizes) -> dict[str, Callable[..., Any]]:
        """The tf_keras layers that `parts` gets as dropouts, by name."""
        rates = self.dropout_rates(sizes)
        return {name: tf_keras.layers.Dropout(rate) for name, rate in rates.items()}

    @property
    def brought(self) -> tuple[str, ...]:
        """Groups of the base's variables for which what is borrowed has others."""
        return ()

    def without_lowest(self, count: int, num_layers: int) -> "ModuleConfig":
        """Without what is in the lowest layers (AdapterDrop). Raises `InputError`."""
        if count:
            raise InputError(
                f"Nothing can be left out of parts of the kind {self.kind!r}. Received: {count} "
                "layers to leave out. Leave them in: drop_lowest=0.",
                "drop_lowest=0",
            )
        return self

    def summary(self) -> str:
        """What a card says of it."""
        return self.kind

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `from_dict` turns into an equal config."""
        named = {} if self.kind == UNNAMED else {"kind": self.kind}
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        inner = {k: v.to_dict() for k, v in values.items() if isinstance(v, ModuleConfig)}
        return named | copy.deepcopy(values | inner)

    def to_json(self) -> str:
        """JSON text that `from_json` turns into an equal config."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Self":
        """The config in a plain dict. Raises `InputError` on unknown kinds, keys and bad types."""
        kind = values.get("kind", UNNAMED)
        known_kinds = [name for name, known in MODULE_KINDS.items() if issubclass(known, cls)]
        if kind not in known_kinds:
            raise InputError(
                f"The kind of an adapter config must be one of {known_kinds}. "
                f"Received: {preview(kind)}. A kind of your own is known once the module that "
                "registers it is imported."
            )
        rest = {key: value for key, value in values.items() if key != "kind"}
        return MODULE_KINDS[kind]._from_fields(rest)  # type: ignore[return-value]

    @classmethod
    def _from_fields(cls, values: Mapping[str, Any]) -> "ModuleConfig":
        known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        unknown = sorted(str(key) for key in set(values) - set(known))
        if unknown:
            raise InputError(
                f"Adapter config: unknown adapter config keys; known are {known}. "
                f"Received: {preview(unknown)}"
            )
        # JSON has no tuples; a config has nothing but them, or two equal ones would not be equal.
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        try:
            return cls(**values)
        except TypeError as error:
            raise InputError(f"Wrong type in the adapter config: {error}") from error

    @classmethod
    def from_json(cls, text: str | bytes) -> "Self":
        """Reads `to_json`'s text. Raises `InputError` also on bad JSON."""
        try:
            values = parse_json(text)
        except ValueError as error:
            raise InputError(f"The adapter config is not valid JSON: {error}") from error
        if not isinstance(values, dict):
            raise InputError(
                f"The adapter config must be a JSON object. Received: {preview(values)}"
            )
        return cls.from_dict(values)


Config = TypeVar("Config", bound=ModuleConfig)


def register(kind: str) -> Callable[[type[Config]], type[Config]]:
    """Class decorator that makes a kind of parts, and its groups, known.

    Raises:
      ValueError: when another class has the name, in whose files it would be found.
    """

    def registered(cls: type[Config]) -> type[Config]:
        there = MODULE_KINDS.get(kind, cls)
        if (there.__module__, there.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"The kind {kind!r} is {there}. Give {cls} another name.")
        cls.kind = kind
        declare_groups(cls.groups)
        MODULE_KINDS[kind] = cls
        return cls

    return registered
