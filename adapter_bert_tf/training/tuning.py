"""Tuning methods: which variables are trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

from adapter_bert_tf.adapters.variable_specs import BASE_GROUPS, VariableSpec
from adapter_bert_tf.errors import Conflict, InputError, require_bools, require_type
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview


@dataclasses.dataclass(frozen=True)
class Tuning:
    """A tuning method and its choices.

    Args:
      method: a key of `METHODS`.
      top_k: number of upper layers, for `top_k`.
      train_layer_norm: whether methods with adapters train all LayerNorms, also the embeddings'.
      train_pooler: whether methods that do not train the base's layers train the pooler.
      train_members: whether `fusion` trains its members too.
      frozen_layers: number of lowest layers to freeze, with the embeddings; 0 to freeze none.

    Raises:
      InputError: for an unknown method or a value of the wrong type.
    """

    method: str = "adapters"
    top_k: int = 2
    train_layer_norm: bool = True
    train_pooler: bool = False
    train_members: bool = False
    frozen_layers: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise InputError(
                f"tuning must be one of {list(METHODS)}. Received: {preview(self.method)}", "tuning"
            )
        for name in ("top_k", "frozen_layers"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise InputError(f"{name} must be a whole number. Received: {preview(value)}", name)
        require_bools(
            train_layer_norm=self.train_layer_norm,
            train_pooler=self.train_pooler,
            train_members=self.train_members,
        )
        if self.frozen_layers and METHODS[self.method].all_layers:
            raise Conflict(
                f"{self.method} has modules in all layers, so no layer can be frozen. Received: "
                f"frozen_layers={self.frozen_layers}",
                f"frozen_layers={self.frozen_layers}",
            )

    @property
    def needs_adapter(self) -> bool:
        """Whether the method trains modules in addition to the base."""
        return METHODS[self.method].modules is not None

    @property
    def changes_base(self) -> bool:
        """Whether the method trains weights of the base, which its tasks share."""
        return METHODS[self.method].changes_base

    @property
    def usual_rate(self) -> float:
        """The default peak learning rate; docs/defaults.md has the measurements."""
        return METHODS[self.method].rate or (5e-5 if self.changes_base else 1e-3)

    @property
    def of_several_tasks(self) -> bool:
        """Whether the method trains several tasks together."""
        return METHODS[self.method].several_tasks

    def check_depth(self, num_layers: int) -> None:
        """`top_k` and `frozen_layers` must fit the base. Raises `InputError`."""
        if self.method == "top_k" and not 1 <= self.top_k <= num_layers:
            raise InputError(
                f"top_k must be 1 to {num_layers}, the base's layer count. Received: {self.top_k}",
                "top_k",
            )
        most = num_layers - (self.top_k if self.method == "top_k" else 1)
        if not 0 <= self.frozen_layers <= most:
            raise InputError(
                f"frozen_layers must be 0 to {most}: the base has {num_layers} layers, and "
                f"{self.method} trains upper ones. Received: {self.frozen_layers}",
                "frozen_layers",
            )

    def freezes(self, spec: VariableSpec) -> bool:
        """Whether a variable belongs to the frozen embeddings or layers."""
        if spec.layer is not None:
            return spec.layer < self.frozen_layers
        # The one LayerNorm outside the layers is the embeddings'.
        return self.frozen_layers > 0 and spec.group in ("embeddings", "LayerNorm")


Predicate = Callable[[VariableSpec, Tuning, int], bool]


@dataclasses.dataclass(frozen=True)
class Method:
    """One row of `METHODS`.

    Args:
      trains: whether a variable is trained, given the tuning and the number of layers; the head
        always is.
      modules: the group of variables that the method adds to the base.
      changes_base: whether it trains weights of the base, which its tasks share.
      several_tasks: whether it trains several tasks together.
      all_layers: whether its modules are in all layers.
      rate: its published peak learning rate, if that differs from the usual ones.
    """

    trains: Predicate
    modules: str | None = None
    changes_base: bool = False
    several_tasks: bool = False
    all_layers: bool = False
    rate: float | None = None


SWITCHES = {
    "LayerNorm": "train_layer_norm",
    "pooler": "train_pooler",
    "members": "train_members",
}


def _groups(*names: str, switched: str = "") -> Predicate:
    """The variables of these groups; those of the switched group and the pooler if chosen."""

    def predicate(spec: VariableSpec, tuning: Tuning, depth: int) -> bool:
        has_switch = spec.group in (switched, "pooler")
        return spec.group in names or (has_switch and getattr(tuning, SWITCHES[spec.group]))

    return predicate


def _all(spec: VariableSpec, tuning: Tuning, depth: int) -> bool:
    return True


def _top_k(spec: VariableSpec, tuning: Tuning, depth: int) -> bool:
    return spec.group == "pooler" or (spec.layer is not None and spec.layer >= depth - tuning.top_k)


# Published rates that differ from the usual rates here (docs/defaults.md): a step of a generator
# changes all weights that it generates, by much more than the rate.
ADAPTERS = _groups("adapters", switched="LayerNorm")
GENERATED = _groups("hypernetwork", switched="LayerNorm")
METHODS: dict[str, Method] = {
    # Houlsby et al. 2019, section 2: adapters, LayerNorm and the head.
    "adapters": Method(ADAPTERS, "adapters"),
    "full": Method(_all, changes_base=True),
    # "Variable fine-tuning": the top k layers with their LayerNorms, and the pooler above them.
    "top_k": Method(_top_k, changes_base=True),
    "layer_norm": Method(_groups("LayerNorm")),
    "head": Method(_groups()),
    # Pfeiffer et al. 2021, section 3.2: the attention over frozen members, and the head.
    "fusion": Method(_groups("fusion", switched="members"), "fusion", all_layers=True),
    # Several tasks together, each with its own head: one encoder for all tasks ...
    "multitask_full": Method(_all, changes_base=True, several_tasks=True),
    # ... one set of adapters for all, or an adapter for each ("Adapters" with a dagger of Mahabadi
    # et al. 2021); the LayerNorms are shared.
    "multitask_adapters": Method(ADAPTERS, "adapters", several_tasks=True),
    "per_task_adapters": Method(ADAPTERS, "adapters", several_tasks=True),
    # LayerNorms shared by all and nothing else: HyperFormer without its adapters.
    "multitask_layer_norm": Method(_groups("LayerNorm"), several_tasks=True),
    # Mahabadi et al. 2021, section 2: the hypernetwork with the tasks' embeddings, and LayerNorms.
    "hyperformer": Method(GENERATED, "hypernetwork", several_tasks=True, rate=3e-4),
    "hyperformer++": Method(GENERATED, "hypernetwork", several_tasks=True, rate=3e-4),
    # Stickland & Murray 2019, section 4: everything.
    "pals": Method(_all, "pals", changes_base=True, several_tasks=True, all_layers=True, rate=2e-5),
}
MULTITASK_METHODS = tuple(name for name, method in METHODS.items() if method.several_tasks)


def is_trained(
    spec: VariableSpec, num_layers: int, tuning: Tuning, unused: Collection[str] = ()
) -> bool:
    """Whether a variable is trained; variables of `unused` groups never are."""
    selected = spec.group == "head" or METHODS[tuning.method].trains(spec, tuning, num_layers)
    return selected and spec.group not in unused and not tuning.freezes(spec)


def select_trained(model: Any, tuning: Tuning) -> dict[str, tf.Variable]:
    """Selects the trained variables of a model and freezes the others.

    Args:
      model: has `named_variables()`, `specs()`, an `encoder` and `unused` groups, which no method
        trains.
      tuning: `Tuning`.

    Returns:
      dict from common name to trained variable, the same as `model.trainable_variables`.

    Raises:
      InputError: when the tuning does not fit the model, or a variable has no specification.
    """
    from adapter_bert_tf.heads.task_model import train_only  # Needs TensorFlow.

    require_type("tuning", tuning, Tuning, 'Tuning("adapters")')
    named, specs = model.named_variables(), model.specs()
    num_layers = model.encoder.config["num_layers"]
    _require_specs(named, specs)
    tuning.check_depth(num_layers)
    _require_modules(specs, tuning)
    trained = {
        name: variable
        for name, variable in named.items()
        if is_trained(specs[name], num_layers, tuning, model.unused)
    }
    train_only(model, trained.values())
    return trained


def _require_modules(specs: Mapping[str, VariableSpec], tuning: Tuning) -> None:
    """Raises `InputError` unless the method's modules exist, above the frozen layers."""
    modules = [spec for spec in specs.values() if spec.group not in BASE_GROUPS]
    groups = sorted({spec.group for spec in modules})
    group = METHODS[tuning.method].modules
    if group is not None and group not in groups:
        received = f"modules in the groups {groups}" if groups else "an encoder without adapters"
        raise InputError(
            f"tuning={tuning.method!r} trains the group {group!r}, which has no variables. "
            f"Received: {received}.",
            f"tuning={tuning.method!r}",
        )
    layers = {spec.layer or 0 for spec in modules if tuning.freezes(spec)}
    if layers:
        raise Conflict(
            f"frozen_layers={tuning.frozen_layers} freezes layers that have modules: "
            f"{sorted(layers)}. Put the modules into other layers.",
            f"frozen_layers={tuning.frozen_layers}",
        )


def _require_specs(named: Mapping[str, tf.Variable], specs: Mapping[str, VariableSpec]) -> None:
    wrong = sorted(set(named) ^ set(specs)) or [
        name for name in named if tuple(named[name].shape) != specs[name].shape
    ]
    if wrong:
        raise InputError(
            "Every variable must be in specs(), with its shape and group. Missing or different: "
            f"{wrong[:5]}"
        )
