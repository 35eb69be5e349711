"""Single-task adapters from a multitask adapter."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.variable_specs import values_with_prefix
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.file_names import TASKS
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.store.multitask import config_of, names_of


def task_adapters(
    config: Mapping[str, Any], values: Mapping[str, Tensor], dtype: str = "float32"
) -> list[Member]:
    """Makes an ordinary adapter of each task, stored as `dtype`; none if the base was trained."""
    if contents.tuning_of(config).changes_base:
        return []
    return [
        Member.from_values(n, *separate_task(config, values, n), dtype) for n in names_of(config)
    ]


def separate_task(
    config: Mapping[str, Any], values: Mapping[str, Tensor], task: str | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Returns the config and the values of an ordinary adapter of one task.

    None stands for a new task, for which a hypernetwork uses the mean of the embeddings. Labels and
    head are then those of the first task and must not be used. Raises `InputError` for an unknown
    task, and for None if the method has no weights for a new task.
    """
    name, adapter = task or names_of(config)[0], contents.adapter_of(config)
    single = adapter.single_task_config() if adapter else None
    method = "adapters" if single else "layer_norm"
    tuning = dataclasses.replace(contents.tuning_of(config), method=method)
    task_config = config_of(config, name) | {
        "method": method,
        "tuning": dataclasses.asdict(tuning),
        "adapter": single.to_dict() if single else None,
    }
    task_values = {**values, **values_with_prefix(values, f"{TASKS}/{name}")}
    if adapter:
        task_values |= adapter.values_of_task(values, name, task)
    return task_config, {key: task_values[key] for key in contents.expected_shapes(task_config)}
