"""What the config of an adapter directory means: its method, and the variables of its file."""

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.variable_specs import (
    BASE_GROUPS,
    VariableSpec,
    base_specs,
    norm_names,
)
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.mixed_classifier import mixed_head_specs
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.multitask import heads_of, is_several
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.training.tuning import Tuning, is_trained


def tuning_of(config):
    """The `Tuning` of a config. Raises `InputError`."""
    values = config["tuning"]
    kinds = {field.name: type(field.default) for field in dataclasses.fields(Tuning)}
    wrong = [
        name
        for name, value in values.items()
        if name not in kinds or type(value) is not kinds[name]
    ]
    if wrong or "method" not in values:
        raise InputError(
            f"tuning holds {preview(wrong)}, unknown or of another type."
            if wrong
            else f"tuning has no method. Received: {preview(values)}"
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


def adapter_of(config: Mapping[str, Any]) -> ModuleConfig | None:
    """The `ModuleConfig` of a config, or None. Raises `InputError`."""
    return ModuleConfig.from_dict(config["adapter"]) if config["adapter"] else None


def borrows(config: Mapping[str, Any]) -> bool:
    """Whether an adapter has weights of others, as a fusion has of its members."""
    adapter = adapter_of(config)
    return bool(adapter and adapter.borrowed_groups)


def num_outputs(config: Mapping[str, Any]) -> int:
    """Width of the head."""
    return type_of(config).num_outputs(config["labels"])


def expected_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Dict from common name to shape: what the weights' file must hold, and nothing else."""
    specs, adapter = _specs(config), adapter_of(config)
    depth = config["base"]["num_layers"]
    kept = kept_names(specs, depth, tuning_of(config), _unused(config))
    elsewhere = adapter.borrowed_groups if adapter else ()
    return {name: specs[name].shape for name in kept if specs[name].group not in elsewhere}


def trained_size(config: Mapping[str, Any]) -> int:
    """Number of the parameters that were trained."""
    specs, unused = _specs(config), _unused(config)
    depth, tuning = config["base"]["num_layers"], tuning_of(config)
    chosen = [spec for spec in specs.values() if is_trained(spec, depth, tuning, unused)]
    return sum(math.prod(spec.shape) for spec in chosen)


def _specs(config: Mapping[str, Any]) -> dict[str, VariableSpec]:
    """Dict from common name to `VariableSpec` of all variables of an adapter's model."""
    sizes, adapter = config["base"], adapter_of(config)
    specs = base_specs(sizes) | (adapter.specs(sizes) if adapter else {})
    if is_several(config):
        return specs | mixed_head_specs(sizes["hidden_size"], heads_of(config))
    return specs | type_of(config).specs(sizes["hidden_size"], config["labels"])


def _unused(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Groups of variables that no output depends on."""
    return () if is_several(config) else type_of(config).unused


def brings_norms(config: Mapping[str, Any]) -> bool:
    """Whether an adapter has all LayerNorms of its own, so that the base's do not matter."""
    shapes, depth = expected_shapes(config), config["base"]["num_layers"]
    adapter = adapter_of(config)
    if adapter and "LayerNorm" in adapter.replaced_groups:
        return True
    return all(f"{name}/gamma" in shapes for name in norm_names(depth))


def kept_names(
    specs: Mapping[str, VariableSpec],
    num_layers: int,
    tuning: Tuning,
    unused: Collection[str] = (),
    replaced: Collection[str] = (),
) -> list[str]:
    """Names of the variables that are not the base's: trained ones, and those of adapter modules.

    Args:
      specs: dict from common name to `VariableSpec`, of all variables of a model.
      num_layers: of the encoder.
      tuning: `Tuning`.
      unused: groups that no output depends on.
      replaced: groups of the base that the method replaces.
    """
    return [
        name
        for name, spec in specs.items()
        if spec.group not in BASE_GROUPS
        or spec.group in replaced
        or is_trained(spec, num_layers, tuning, unused)
    ]


def kept_variables(
    model: Any, tuning: Tuning, adapter: ModuleConfig | None = None
) -> dict[str, tf.Variable]:
    """Dict from common name to variable: all of a model that is not the base's."""
    named, depth = model.named_variables(), model.encoder.config["num_layers"]
    replaced = adapter.replaced_groups if adapter else ()
    names = kept_names(model.specs(), depth, tuning, model.unused, replaced)
    return {name: named[name] for name in names}
