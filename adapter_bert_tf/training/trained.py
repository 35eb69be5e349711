"""What is trained: the one place that decides it, and the report that shows it."""

import dataclasses
import re

import tf_keras

from adapter_bert_tf.errors import InputError

GROUPS = ("adapters", "LayerNorm", "pooler", "head", "layers", "embeddings")


@dataclasses.dataclass(frozen=True)
class Tuning:
    """A tuning method and its choices (the flags of the same names).

    Args:
      method: a key of `PREDICATES`.
      top_k: number of upper layers, for `top_k`.
      train_layer_norm: whether `adapters` trains all LayerNorms, the embeddings' too.
      train_pooler: whether `adapters`, `layer_norm` and `head` train the pooler.

    Raises:
      InputError: for an unknown method.
    """

    method: str = "adapters"
    top_k: int = 2
    train_layer_norm: bool = True
    train_pooler: bool = False

    def __post_init__(self):
        if self.method not in PREDICATES:
            raise InputError(f"tuning must be one of {list(PREDICATES)}. Received: {self.method!r}")

    @property
    def needs_adapter(self):
        """Whether the method trains adapters."""
        return self.method == "adapters"

    @property
    def changes_base(self):
        """Whether the method trains weights that all tasks of a base share."""
        return self.method in ("full", "top_k")

    def check_depth(self, num_layers):
        """`top_k` must fit the base. Raises `InputError`."""
        if self.method == "top_k" and not 1 <= self.top_k <= num_layers:
            raise InputError(
                f"--top_k must be 1 to {num_layers}, the base's layer count. Received: {self.top_k}"
            )


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a variable belongs: its group of `GROUPS`, and its distance from the top layer."""

    group: str
    from_top: int | None


# A method is a predicate over (place of a variable, tuning); the head is always trained.
PREDICATES = {
    # Houlsby et al. 2019, section 2: adapters, LayerNorm and the head.
    "adapters": lambda p, t: (
        p.group == "adapters" or (p.group == "LayerNorm" and t.train_layer_norm) or _pooler(p, t)
    ),
    "full": lambda p, t: True,
    # "Variable fine-tuning": the top k layers with their LayerNorms, and the pooler above them.
    "top_k": lambda p, t: p.group == "pooler" or (p.from_top is not None and p.from_top < t.top_k),
    "layer_norm": lambda p, t: p.group == "LayerNorm" or _pooler(p, t),
    "head": lambda p, t: _pooler(p, t),
}


def _pooler(place, tuning):
    return place.group == "pooler" and tuning.train_pooler


def place_of(name, num_layers):
    """The `Place` of a variable, from its common name."""
    layer = re.search(r"layer_(\d+)/", name)
    from_top = None if layer is None else num_layers - 1 - int(layer[1])
    if name.startswith(("adapters/", "head/")):
        return Place(name.split("/")[0], from_top)
    if "/LayerNorm/" in name:
        return Place("LayerNorm", from_top)
    if "/pooler/" in name:
        return Place("pooler", None)
    return Place("embeddings" if layer is None else "layers", from_top)


def is_trained(name, num_layers, tuning, unused=()):
    """Whether a variable is trained, by its common name; `unused` are groups that never are."""
    place = place_of(name, num_layers)
    chosen = place.group == "head" or PREDICATES[tuning.method](place, tuning)
    return bool(chosen) and place.group not in unused


def select_trained(model, tuning):
    """Sets what `model` trains, and returns it.

    Args:
      model: has `named_variables()`, an `encoder` and `unused` groups, which no method trains.
      tuning: `Tuning`.

    Returns:
      dict from common name to variable, of the trained ones; `model.trainable_variables` has the
      same variables.

    Raises:
      InputError: when `top_k` exceeds the base, or there are no adapters to train.
    """
    named, num_layers = model.named_variables(), model.encoder.config["num_layers"]
    tuning.check_depth(num_layers)
    if tuning.needs_adapter and not any(name.startswith("adapters/") for name in named):
        raise InputError("--tuning=adapters needs an encoder with adapters. Received one without.")
    trained = {
        name: variable
        for name, variable in named.items()
        if is_trained(name, num_layers, tuning, model.unused)
    }
    _freeze_all_but(model, {variable.ref() for variable in trained.values()})
    return trained


def _freeze_all_but(model, trained):
    """Freezes layer by layer, as tf_keras does it; the variables of a leaf share one fate."""
    layers = [module for module in model.submodules if isinstance(module, tf_keras.layers.Layer)]
    for layer in layers:
        inner = (sub for sub in layer.submodules if isinstance(sub, tf_keras.layers.Layer))
        if layer.variables and not any(sub.variables for sub in inner):
            layer.trainable = layer.variables[0].ref() in trained


def count(variables):
    """Number of parameters of an iterable of variables."""
    return sum(int(variable.shape.num_elements()) for variable in variables)


def report(model, trained, tuning):
    """The lines that say what is trained: by group, then adapter-bert's two."""
    named = model.named_variables()
    num_layers = model.encoder.config["num_layers"]
    total = count(named.values())
    lines = [
        f"What --tuning={tuning.method} trains:",
        f"  {'group':<12}{'trained':>14}{'of':>14}{'share of all':>15}",
    ]
    for group in GROUPS:
        names = [name for name in named if place_of(name, num_layers).group == group]
        if names:
            part = count(trained[name] for name in names if name in trained)
            lines.append(
                f"  {group:<12}{part:>14,}{count(named[n] for n in names):>14,}"
                f"{part / total:>14.3%}"
            )
    in_total = count(trained.values())
    return "\n".join(
        [
            *lines,
            f"  {'all':<12}{in_total:>14,}{total:>14,}{in_total / total:>14.3%}",
            f"***** Total Parameters = {total} *****",
            f"***** Total Trainable Parameters = {in_total} *****",
        ]
    )
