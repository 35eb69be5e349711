"""Meaning of the config of an adapter directory: its method, and the variables of its file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

from absl import logging

from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.variable_specs import (
    BASE_GROUPS,
    VariableSpec,
    base_specs,
    norm_names,
)
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.specs import mixed_head_specs
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.multitask import common_type, heads_of, is_several, types_of
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.training.tuning import Tuning, is_trained


def tuning_of(config: Mapping[str, Any]) -> Tuning:
    """The `Tuning` of a config. Raises `InputError`."""
    values = config["tuning"]
    unknown = values.keys() - {field.name for field in dataclasses.fields(Tuning)}
    if unknown or "method" not in values:
        raise InputError(
            f"tuning holds {preview(sorted(unknown))}, which is unknown."
            if unknown
            else f"tuning has no method. Received: {preview(values)}"
        )
    return Tuning(**values)


def name_of(config: Mapping[str, Any]) -> str:
    """The name of an adapter: its own, or its task's."""
    name: str = config.get("name") or config["task"]
    return name


def named(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The config of the same adapter with another name."""
    rest = {key: value for key, value in config.items() if key != "name"}
    return rest if name == config["task"] else rest | {"name": name}


def merge_settings(
    recorded: Mapping[str, Any], given: Mapping[str, Any], dashes: str = ""
) -> dict[str, Any]:
    """The recorded settings, with the given ones in their place; warns of those that differ.

    Args:
      recorded: values by setting, from an adapter.
      given: values by setting, from the user.
      dashes: what precedes a setting's name in a message: `--` in a command.
    """
    different = [
        f"{dashes}{name}={preview(value)}, the adapter {preview(recorded[name])}"
        for name, value in given.items()
        if name in recorded and str(value) != str(recorded[name])
    ]
    if different:
        logging.warning("Not as the adapter was trained: %s.", "; ".join(different))
    return {**recorded, **given}


def adapter_of(config: Mapping[str, Any]) -> ModuleConfig | None:
    """The `ModuleConfig` of a config, or None. Raises `InputError`."""
    return ModuleConfig.from_dict(config["adapter"]) if config["adapter"] else None


def computation(config: Mapping[str, Any]) -> tuple[str, str, int]:
    """What adapters with the same compiled pass have in common: module, head, frozen layers."""
    return repr(adapter_of(config)), config["head"], tuning_of(config).frozen_layers


def num_outputs(config: Mapping[str, Any]) -> int:
    """Width of the head."""
    return type_of(config).num_outputs(config["labels"])


def expected_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Dict from common name to shape of everything that the weights file must hold."""
    specs, adapter = _specs(config), adapter_of(config)
    kept = kept_names(specs, config["base"]["num_layers"], tuning_of(config), _unused(config))
    borrowed = adapter.borrowed_groups if adapter else ()
    return {name: specs[name].shape for name in kept if specs[name].group not in borrowed}


def borrowed_names(config: Mapping[str, Any]) -> list[str]:
    """Common names of the variables whose values other adapters hold."""
    adapter = adapter_of(config)
    groups = adapter.borrowed_groups if adapter else ()
    return [name for name, spec in _specs(config).items() if spec.group in groups] if groups else []


def trained_size(config: Mapping[str, Any]) -> int:
    """Number of the parameters that were trained."""
    depth, tuning, unused = config["base"]["num_layers"], tuning_of(config), _unused(config)
    specs = _specs(config).values()
    return sum(math.prod(s.shape) for s in specs if is_trained(s, depth, tuning, unused))


def _specs(config: Mapping[str, Any]) -> dict[str, VariableSpec]:
    """Dict from common name to `VariableSpec` of all variables of an adapter's model."""
    sizes, adapter = config["base"], adapter_of(config)
    specs = base_specs(sizes) | (adapter.specs(sizes) if adapter else {})
    if is_several(config):
        return specs | mixed_head_specs(sizes["hidden_size"], heads_of(config))
    return specs | type_of(config).specs(sizes, config["labels"])


def _unused(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Groups of variables that no output depends on."""
    kind = common_type(types_of(config)) if is_several(config) else type_of(config)
    return kind.unused


def brings_norms(config: Mapping[str, Any]) -> bool:
    """Whether an adapter replaces all LayerNorms of the base."""
    adapter = adapter_of(config)
    if adapter and "LayerNorm" in adapter.replaced_groups:
        return True
    shapes = expected_shapes(config)
    return all(f"{name}/gamma" in shapes for name in norm_names(config["base"]["num_layers"]))


def kept_names(
    specs: Mapping[str, VariableSpec],
    num_layers: int,
    tuning: Tuning,
    unused: Collection[str] = (),
    replaced: Collection[str] = (),
) -> list[str]:
    """Names of trained variables, those of modules, and those of groups that are replaced."""
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
    """Dict from common name to variable of what an adapter keeps of a model."""
    variables, depth = model.named_variables(), model.encoder.config["num_layers"]
    replaced = adapter.replaced_groups if adapter else ()
    names = kept_names(model.specs(), depth, tuning, model.unused, replaced)
    return {name: variables[name] for name in names}
