"""Adapters of one task each, from what was trained on several together."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.adapters.bottleneck import under
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.per_task import PerTaskConfig
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.folders import TASKS
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.store.several import config_of, names_of


def each_task(
    config: Mapping[str, Any], values: Mapping[str, Tensor], dtype: str = "float32"
) -> list[Member]:
    """An ordinary adapter of each task; none where the base itself was trained.

    What the tasks share, LayerNorms and a pooler or all of an adapter, each has a copy of.

    Args:
      config: of several tasks.
      values: dict from common name to what was trained.
      dtype: of their files.
    """
    tuning = contents.tuning_of(config)
    if tuning.changes_base:
        return []
    adapter = contents.adapter_of(config)
    adapter = adapter.adapter if isinstance(adapter, PerTaskConfig) else adapter
    of_one = dataclasses.replace(tuning, method="adapters")
    shared = {name: value for name, value in values.items() if not name.startswith(f"{TASKS}/")}
    return [
        Member.of(
            name,
            config_of(config, name)
            | {
                "method": of_one.method,
                "tuning": dataclasses.asdict(of_one),
                "adapter": adapter and adapter.to_dict(),
            },
            shared | under(values, f"{TASKS}/{name}"),
            dtype,
        )
        for name in names_of(config)
    ]
