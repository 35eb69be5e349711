"""Adapters of one task each, from what was trained on several together."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.adapters.methods.bottleneck import values_with_prefix
from adapter_bert_tf.adapters.methods.multitask import MultitaskConfig
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.folders import TASKS
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.store.multitask import config_of, names_of


def each_task(
    config: Mapping[str, Any], values: Mapping[str, Tensor], dtype: str = "float32"
) -> list[Member]:
    """An ordinary adapter of each task; none where the base itself was trained.

    What the tasks share, LayerNorms and a pooler or all of an adapter, each has a copy of; what a
    hypernetwork makes for it is written as it is made.

    Args:
      config: of several tasks.
      values: dict from common name to what was trained.
      dtype: of their files.
    """
    if contents.tuning_of(config).changes_base:
        return []
    return [Member.of(n, *apart(config, values, n), dtype) for n in names_of(config)]


def apart(
    config: Mapping[str, Any], values: Mapping[str, Tensor], task: str | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The config and the values of an ordinary adapter of one task.

    Args:
      config: of several tasks.
      values: dict from common name to what was trained.
      task: whose; None: of a new one, for which a hypernetwork reads the mean of the embeddings.
        The labels and the head are then those of the first, and not to be used.

    Raises:
      InputError: when there is no task of that name, or nothing that a new one could have.
    """
    name = task or names_of(config)[0]
    of_one = config_of_one(config, name)
    found = {**values, **values_with_prefix(values, f"{TASKS}/{name}")}
    adapter = contents.adapter_of(config)
    if isinstance(adapter, MultitaskConfig):
        alone = dataclasses.replace(adapter, tasks=(name,))  # type: ignore[type-var]
        found |= alone.of_each(adapter.for_tasks(values, {name: task}))[name]
    return of_one, {key: found[key] for key in contents.expected_shapes(of_one)}


def config_of_one(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What the config of an ordinary adapter of one of the tasks says. Raises `InputError`."""
    tuning, adapter = contents.tuning_of(config), contents.adapter_of(config)
    adapter = adapter.of_one() if isinstance(adapter, MultitaskConfig) else adapter
    tuning = dataclasses.replace(tuning, method="adapters" if adapter else "layer_norm")
    return config_of(config, name) | {
        "method": tuning.method,
        "tuning": dataclasses.asdict(tuning),
        "adapter": adapter.to_dict() if adapter else None,
    }


def is_made(config: Mapping[str, Any]) -> bool:
    """Whether adapters of single tasks are computed from what was trained, and not a part of it."""
    adapter = contents.adapter_of(config)
    return isinstance(adapter, MultitaskConfig) and adapter.generates
