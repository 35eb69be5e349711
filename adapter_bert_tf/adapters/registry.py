"""Base class of the configurations of methods, and the registry of their kinds."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from typing_extensions import Self

from adapter_bert_tf.adapters.modules import AdapterModule, Function
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.variable_specs import Sizes, VariableSpec, declare_groups
from adapter_bert_tf.errors import Conflict, InputError, Unsupported
from adapter_bert_tf.lazy import tf_keras
from adapter_bert_tf.sanitize import parse_json, preview

MODULE_KINDS: dict[str, type[ModuleConfig]] = {}
TASKS = "tasks"  # First part of the names of a task's variables.
DEFAULT_KIND = "bottleneck"  # Of a dict without a kind: the first versions had no other.


def require(title: str, condition: Any, message: str, received: Any) -> None:
    """Raises `InputError` with the title of a configuration if a condition is false."""
    if not condition:
        raise InputError(f"{title}: {message}. Received: {preview(received)}")


class ModuleConfig:
    """The configuration of a method, one value in flags and files: a frozen dataclass a kind.

    Attributes:
      kind: its name in files.
      module_class: the `AdapterModule` that computes it; `module_for` sets it.
      groups: of its variables, in the order of the report.
      why_unmerged: why it cannot be merged into the base; empty if it can.
      stackable: whether rows of one batch may each have values of their own.
      composite: whether it consists of other methods.
      borrowed_groups: groups whose values come from other adapters, the members.
      generates: whether the adapters of a task are computed from other variables. They then differ
        between machines by rounding.
      adjustable: dict from what a setting can change (`size`, `layers`, `init_scale`) to the fields
        that hold it: the first gets the value, the others their defaults.
    """

    kind: ClassVar[str]
    module_class: ClassVar[type[AdapterModule]]
    groups: ClassVar[tuple[str, ...]] = ("adapters",)
    why_unmerged: ClassVar[str] = "it computes what a dense layer cannot"
    stackable: ClassVar[bool] = False
    composite: ClassVar[bool] = False
    borrowed_groups: ClassVar[tuple[str, ...]] = ()
    generates: ClassVar[bool] = False
    adjustable: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def specs(self, sizes: Sizes) -> dict[str, VariableSpec]:
        """Dict from common name to `VariableSpec` of all its variables. Raises `InputError`."""
        raise NotImplementedError

    def module(
        self,
        values: Mapping[str, Tensor],
        dropouts: Mapping[str, Function] | None = None,
        stacked: str | None = None,
    ) -> AdapterModule:
        """The module that computes with values; arguments as of `AdapterModule`."""
        return self.module_class(self, values, dropouts, stacked)

    def dropout_rates(self, sizes: Sizes) -> dict[str, float]:
        """Dict from name to rate of the dropouts that its training needs."""
        return {}

    def new_dropouts(self, sizes: Sizes) -> dict[str, Callable[..., Any]]:
        """Dict from name to tf_keras layer: the dropouts of its module."""
        return {n: tf_keras.layers.Dropout(rate) for n, rate in self.dropout_rates(sizes).items()}

    @property
    def replaced_groups(self) -> tuple[str, ...]:
        """Groups of the base's variables that the borrowed values replace."""
        return ()

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks that have variables of their own; none for one set of variables."""
        return ()

    @property
    def member_names(self) -> tuple[str, ...]:
        """The adapters that the values of `borrowed_groups` come from."""
        return ()

    @property
    def changed_sublayers(self) -> tuple[str, ...]:
        """The sublayers that change, of `modules.PROJECTIONS`; none if that is not known."""
        return ()

    @property
    def factors(self) -> tuple[str, ...]:
        """Last parts of the names of two variables whose product is added to the base, if any."""
        return ()

    def factor_values(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Those of some variables that are `factors`."""
        return {n: value for n, value in values.items() if n.rpartition("/")[2] in self.factors}

    @property
    def adds_positions(self) -> bool:
        """Whether keys and values get more positions."""
        return False

    @property
    def learning_rate(self) -> float | None:
        """Its peak learning rate where none is given, as a class attribute; None: the tuning's."""
        return None

    @property
    def trained_part(self) -> ModuleConfig:
        """The configuration without what stays frozen."""
        return self

    @property
    def changes_embeddings(self) -> bool:
        """Whether the input of the lowest block changes."""
        return False

    def sizes(self, num_layers: int) -> tuple[int, ...]:
        """The sizes of all places that have one, such as ranks, for lists of adapters."""
        first, *_ = self.adjustable.get("size", (None,))
        return (getattr(self, first),) if first else ()

    def single_task_config(self) -> ModuleConfig | None:
        """The configuration of one task's adapters by themselves; None if there is no such."""
        return self

    def with_tasks(self, names: Sequence[str]) -> Self:
        """The configuration for other tasks."""
        return self

    def values_for_tasks(
        self, values: Mapping[str, Tensor], sources: Mapping[str, str | None]
    ) -> dict[str, Tensor]:
        """Values of this configuration for other tasks, without those of heads.

        `sources` maps each new task to the task whose values it takes, or to None for the mean of
        all tasks. Raises `InputError` for None if the method does not generate its adapters.
        """
        return {n: value for n, value in values.items() if not n.startswith(f"{TASKS}/")}

    def values_of_task(
        self, values: Mapping[str, Tensor], name: str, source: str | None
    ) -> dict[str, Tensor]:
        """The values of `single_task_config` that a task has for itself; see `values_for_tasks`."""
        return {}

    def adjusted(self, **values: Any) -> Self:
        """The configuration with values by the names of `adjustable`. Raises `InputError`."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        changes: dict[str, Any] = {}
        for name, value in values.items():
            if name not in self.adjustable:
                raise Conflict(
                    f"The kind {self.kind!r} has no {name}; it has {list(self.adjustable)}. "
                    f"Received: {name}={preview(value)}. Leave it out.",
                    name,
                )
            first, *others = self.adjustable[name]
            changes |= {field: defaults[field] for field in others} | {first: value}
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def adjusted_like(self, other: ModuleConfig, names: Collection[str]) -> Self:
        """The configuration with some of what is `adjustable` from another of its kind."""
        names = [name for name in names if name in self.adjustable]
        if other.kind != self.kind or not names:
            return self
        fields = [field for name in names for field in self.adjustable[name]]
        return dataclasses.replace(self, **{f: getattr(other, f) for f in fields})  # type: ignore[type-var]

    def borrowed_values(self, members: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """The values of `borrowed_groups`, by common name, from the weights of each member."""
        return {}

    def stored_config(self) -> ModuleConfig:
        """The configuration that an adapter directory holds: without what only training needs."""
        return self

    def stored_values(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The values of `stored_config`, as tensors, from those of this configuration."""
        return dict(values)

    def weighted_sum(
        self, values: Sequence[Mapping[str, np.ndarray]], shares: Sequence[float]
    ) -> tuple[ModuleConfig, dict[str, np.ndarray]] | None:
        """A configuration and values that add exactly the weighted sum of what adapters add.

        `values` are the `factor_values` of each adapter. None if the method has no such values;
        then the sum is taken of each variable.
        """
        return None

    def merged(
        self, values: Mapping[str, np.ndarray], base: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Dict from common name to the values of the base's variables that change if it is merged.

        `values` are those of `specs`, `base` those of the base, by common name. Only for a method
        that `check_mergeable` accepts.
        """
        raise NotImplementedError

    def check_mergeable(self) -> None:
        """Raises `Unsupported` for a method that no weights of the base can replace."""
        if self.why_unmerged:
            raise Unsupported(
                f"The kind {self.kind!r} cannot be merged into the base: {self.why_unmerged}. "
                "Export it with merge=False.",
                "merge=False",
            )

    def without_lowest(self, count: int, num_layers: int) -> ModuleConfig:
        """The configuration without the lowest layers (AdapterDrop). Raises `InputError`."""
        if count:
            raise Conflict(
                f"The kind {self.kind!r} cannot leave out its lowest layers. Received: {count} "
                "layers. Use drop_lowest=0.",
                "drop_lowest=0",
            )
        return self

    def summary(self) -> str:
        """A short description for the card."""
        return self.kind

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain values; the inverse of `from_dict`."""
        named = {} if self.kind == DEFAULT_KIND else {"kind": self.kind}
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        inner = {k: v.to_dict() for k, v in values.items() if isinstance(v, ModuleConfig)}
        return named | copy.deepcopy(values | inner)

    def to_json(self) -> str:
        """The configuration as JSON text; the inverse of `from_json`."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Makes a configuration from plain values. Raises `InputError`."""
        kind = values.get("kind", DEFAULT_KIND)
        known_kinds = [name for name, known in MODULE_KINDS.items() if issubclass(known, cls)]
        if kind not in known_kinds:
            raise InputError(
                f"The kind of an adapter config must be one of {known_kinds}. "
                f"Received: {preview(kind)}. For a kind of your own, first import the file that "
                "registers it."
            )
        rest = {key: value for key, value in values.items() if key != "kind"}
        return MODULE_KINDS[kind]._from_fields(rest)  # type: ignore[return-value]

    @classmethod
    def _from_fields(cls, values: Mapping[str, Any]) -> ModuleConfig:
        known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        unknown = sorted(str(key) for key in set(values) - set(known))
        message = f"unknown adapter config keys; known are {known}"
        require("Adapter config", not unknown, message, unknown)
        # JSON has lists only, and a list is not equal to a tuple.
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        try:
            return cls(**values)
        except TypeError as error:
            raise InputError(f"Wrong type in the adapter config: {error}") from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Makes a configuration from JSON text. Raises `InputError`, also for invalid JSON."""
        try:
            values = parse_json(text)
        except ValueError as error:
            raise InputError(f"The adapter config is not valid JSON: {error}") from error
        require("Adapter config", isinstance(values, dict), "it must be a JSON object", values)
        return cls.from_dict(values)


Config = TypeVar("Config", bound=ModuleConfig)
Module = TypeVar("Module", bound=AdapterModule)


def of_kind(config: ModuleConfig | None, kind: type[Config]) -> Config | None:
    """A configuration if it is of one kind, or None."""
    return config if isinstance(config, kind) else None


def register(kind: str) -> Callable[[type[Config]], type[Config]]:
    """Class decorator that registers a configuration and its groups under the name of its kind.

    Raises `ValueError` when another class has the name: its files would be read as that class.
    """

    def decorate(cls: type[Config]) -> type[Config]:
        registered = MODULE_KINDS.get(kind, cls)
        if (registered.__module__, registered.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"The kind {kind!r} is {registered}. Give {cls} another name.")
        cls.kind = kind
        declare_groups(cls.groups)
        MODULE_KINDS[kind] = cls
        return cls

    return decorate


def module_for(config_class: type[ModuleConfig]) -> Callable[[type[Module]], type[Module]]:
    """Class decorator that makes an `AdapterModule` compute a kind of configurations."""

    def decorate(cls: type[Module]) -> type[Module]:
        config_class.module_class = cls
        return cls

    return decorate
