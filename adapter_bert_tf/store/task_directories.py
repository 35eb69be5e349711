"""Single-task adapters from a multitask adapter."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.adapters.methods.multitask import MultitaskConfig
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.variable_specs import values_with_prefix
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.file_names import TASKS
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.store.multitask import config_of, names_of


def task_adapters(
    config: Mapping[str, Any], values: Mapping[str, Tensor], dtype: str = "float32"
) -> list[Member]:
    """Makes an ordinary adapter of each task; an empty list if the base itself was trained.

    Each has a copy of shared weights, and the generated weights of a hypernetwork.

    Args:
      config: config of a multitask adapter.
      values: dict from common name to trained weights.
      dtype: dtype of their files.
    """
    if contents.tuning_of(config).changes_base:
        return []
    return [
        Member.from_values(n, *separate_task(config, values, n), dtype) for n in names_of(config)
    ]


def separate_task(
    config: Mapping[str, Any], values: Mapping[str, Tensor], task: str | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Returns the config and the values of an ordinary adapter of one task.

    Args:
      config: config of a multitask adapter.
      values: dict from common name to trained weights.
      task: name of the task; None for a new task, for which a hypernetwork uses the mean of the
        embeddings. Labels and head are then those of the first task and must not be used.

    Raises:
      InputError: for an unknown task, or a method without weights for a new task.
    """
    name = task or names_of(config)[0]
    task_config = single_task_config(config, name)
    task_values = {**values, **values_with_prefix(values, f"{TASKS}/{name}")}
    adapter = contents.adapter_of(config)
    if isinstance(adapter, MultitaskConfig):
        single = dataclasses.replace(adapter, tasks=(name,))  # type: ignore[type-var]
        task_values |= single.values_by_task(adapter.values_for_tasks(values, {name: task}))[name]
    return task_config, {key: task_values[key] for key in contents.expected_shapes(task_config)}


def single_task_config(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns the config of an ordinary adapter of one task. Raises `InputError`."""
    tuning, adapter = contents.tuning_of(config), contents.adapter_of(config)
    adapter = adapter.single_task_config() if isinstance(adapter, MultitaskConfig) else adapter
    tuning = dataclasses.replace(tuning, method="adapters" if adapter else "layer_norm")
    return config_of(config, name) | {
        "method": tuning.method,
        "tuning": dataclasses.asdict(tuning),
        "adapter": adapter.to_dict() if adapter else None,
    }


def is_generated(config: Mapping[str, Any]) -> bool:
    """Whether single-task adapters are generated and not a subset of the trained weights."""
    adapter = contents.adapter_of(config)
    return isinstance(adapter, MultitaskConfig) and adapter.generates
