"""Tuning methods: which variables are trained."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.variable_specs import BASE_GROUPS, VariableSpec
from adapter_bert_tf.errors import InputError, require_bools, require_type
from adapter_bert_tf.heads.task_model import train_only
from adapter_bert_tf.sanitize import preview

# Published rates that differ from the usual rates here (docs/defaults.md): Stickland & Murray 2019,
# section 4; the configurations of Mahabadi et al. 2021. A step changes all weights of a generator,
# so the generated weights change by much more than the rate.
PUBLISHED_RATES = {"pals": 2e-5, "hyperformer": 3e-4, "hyperformer++": 3e-4}


@dataclasses.dataclass(frozen=True)
class Tuning:
    """A tuning method and its choices.

    Args:
      method: a key of `PREDICATES`.
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
        if not isinstance(self.method, str) or self.method not in PREDICATES:
            raise InputError(
                f"tuning must be one of {list(PREDICATES)}. Received: {preview(self.method)}",
                "tuning",
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
        if self.frozen_layers and self.method in ALL_LAYER_METHODS:
            raise InputError(
                f"{self.method} has modules in all layers, so no layer can be frozen. Received: "
                f"frozen_layers={self.frozen_layers}",
                f"frozen_layers={self.frozen_layers}",
            )

    @property
    def needs_adapter(self) -> bool:
        """Whether the method trains modules in addition to the base."""
        return self.method in MODULE_GROUPS

    @property
    def changes_base(self) -> bool:
        """Whether the method trains weights of the base, which its tasks share."""
        return self.method in BASE_METHODS

    @property
    def usual_rate(self) -> float:
        """The default peak learning rate; docs/defaults.md has the measurements."""
        if self.method in PUBLISHED_RATES:
            return PUBLISHED_RATES[self.method]
        return 5e-5 if self.changes_base else 1e-3

    @property
    def of_several_tasks(self) -> bool:
        """Whether the method trains several tasks together."""
        return self.method in MULTITASK_METHODS

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


Predicate = Callable[[VariableSpec, "Tuning", int], bool]


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


# The group of variables that a method adds to the base.
MODULE_GROUPS = {
    "adapters": "adapters",
    "fusion": "fusion",
    "multitask_adapters": "adapters",
    "per_task_adapters": "adapters",
    "hyperformer": "hypernetwork",
    "hyperformer++": "hypernetwork",
    "pals": "pals",
}
ALL_LAYER_METHODS = ("fusion", "pals")
# A method is a predicate over (variable, tuning, number of layers); the head is always trained.
SINGLE_TASK_PREDICATES: dict[str, Predicate] = {
    # Houlsby et al. 2019, section 2: adapters, LayerNorm and the head.
    "adapters": _groups("adapters", switched="LayerNorm"),
    "full": _all,
    # "Variable fine-tuning": the top k layers with their LayerNorms, and the pooler above them.
    "top_k": _top_k,
    "layer_norm": _groups("LayerNorm"),
    "head": _groups(),
    # Pfeiffer et al. 2021, section 3.2: the attention over frozen members, and the head.
    "fusion": _groups("fusion", switched="members"),
}
# Several tasks together, each with its own head.
MULTITASK_PREDICATES: dict[str, Predicate] = {
    # One encoder for all tasks ...
    "multitask_full": _all,
    # ... one set of adapters for all, or an adapter for each ("Adapters" with a dagger of Mahabadi
    # et al. 2021); the LayerNorms are shared.
    "multitask_adapters": _groups("adapters", switched="LayerNorm"),
    "per_task_adapters": _groups("adapters", switched="LayerNorm"),
    # LayerNorms shared by all and nothing else: HyperFormer without its adapters.
    "multitask_layer_norm": _groups("LayerNorm"),
    # Mahabadi et al. 2021, section 2: the hypernetwork with the tasks' embeddings, and LayerNorms.
    "hyperformer": _groups("hypernetwork", switched="LayerNorm"),
    "hyperformer++": _groups("hypernetwork", switched="LayerNorm"),
    # Stickland & Murray 2019: everything.
    "pals": _all,
}
MULTITASK_METHODS = tuple(MULTITASK_PREDICATES)
PREDICATES = {**SINGLE_TASK_PREDICATES, **MULTITASK_PREDICATES}
BASE_METHODS = ("full", "top_k", "multitask_full", "pals")  # They train weights of the base.


def is_trained(
    spec: VariableSpec, num_layers: int, tuning: Tuning, unused: Collection[str] = ()
) -> bool:
    """Whether a variable is trained; variables of `unused` groups never are."""
    selected = spec.group == "head" or PREDICATES[tuning.method](spec, tuning, num_layers)
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
    group = MODULE_GROUPS.get(tuning.method)
    if group is not None and group not in groups:
        received = f"modules in the groups {groups}" if groups else "an encoder without adapters"
        raise InputError(
            f"tuning={tuning.method!r} trains the group {group!r}, which has no variables. "
            f"Received: {received}.",
            f"tuning={tuning.method!r}",
        )
    layers = {spec.layer or 0 for spec in modules if tuning.freezes(spec)}
    if layers:
        raise InputError(
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
