"""What the config of an adapter directory means: its method, and the variables of its file."""

from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.kinds import PartsConfig
from adapter_bert_tf.adapters.specs import BASE_GROUPS, Spec, base_specs, norm_names
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import head_of
from adapter_bert_tf.received import shown
from adapter_bert_tf.training.trained import Tuning, is_trained


def tuning_of(config):
    """The `Tuning` of a config. Raises `InputError`."""
    values = config["tuning"]
    kinds = {"method": str, "top_k": int, "train_layer_norm": bool, "train_pooler": bool}
    wrong = [
        name
        for name, value in values.items()
        if name not in kinds or type(value) is not kinds[name]
    ]
    if wrong or "method" not in values:
        raise InputError(
            f"tuning holds {shown(wrong)}, unknown or of another type."
            if wrong
            else f"tuning has no method. Received: {shown(values)}"
        )
    return Tuning(**values)


def name_of(config: Mapping[str, Any]) -> str:
    """What the adapter is called: its task's name, or the one that it was given."""
    name: str = config.get("name") or config["task"]
    return name


def named(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The config of the same adapter under a name."""
    rest = {key: value for key, value in config.items() if key != "name"}
    return rest if name == config["task"] else rest | {"name": name}


def adapter_of(config: Mapping[str, Any]) -> PartsConfig | None:
    """The `PartsConfig` of a config, or None. Raises `InputError`."""
    return PartsConfig.from_dict(config["adapter"]) if config["adapter"] else None


def num_outputs(config: Mapping[str, Any]) -> int:
    """Width of the head: one for each label, 1 for regression."""
    return head_of(config).num_outputs(config["labels"])


def expected_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Dict from common name to shape: what the weights' file must hold, and nothing else."""
    sizes, adapter, head = config["base"], adapter_of(config), head_of(config)
    specs = base_specs(sizes) | (adapter.specs(sizes) if adapter else {})
    specs |= head.specs(sizes["hidden_size"], config["labels"])
    kept = kept_names(specs, sizes["num_layers"], tuning_of(config), head.unused)
    return {name: specs[name].shape for name in kept}


def brings_norms(config: Mapping[str, Any]) -> bool:
    """Whether an adapter has all LayerNorms of its own, so that the base's do not matter."""
    shapes, depth = expected_shapes(config), config["base"]["num_layers"]
    return all(f"{name}/gamma" in shapes for name in norm_names(depth))


def kept_names(
    specs: Mapping[str, Spec], num_layers: int, tuning: Tuning, unused: Collection[str] = ()
) -> list[str]:
    """Names of the variables that a file must hold: what is trained, and all that parts have.

    Args:
      specs: dict from common name to `Spec`, of all variables of a model.
      num_layers: of the encoder.
      tuning: `Tuning`.
      unused: groups that no output depends on.
    """
    return [
        name
        for name, spec in specs.items()
        if spec.group not in BASE_GROUPS or is_trained(spec, num_layers, tuning, unused)
    ]


def kept_variables(model: Any, tuning: Tuning) -> dict[str, tf.Variable]:
    """Dict from common name to variable: those of a model that a file must hold."""
    named, depth = model.named_variables(), model.encoder.config["num_layers"]
    return {name: named[name] for name in kept_names(model.specs(), depth, tuning, model.unused)}
