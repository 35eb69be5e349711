"""Adapters that were trained on another split of the data, and may have seen the dev set."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.store.combining.combine import MIXED_SPLITS, SPLIT_KEYS
from adapter_bert_tf.store.contents import name_of
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.store.multitask import config_of, is_several, names_of

PARTLY_SEEN = "dev, some of it trained on before"


def adapter_config(
    task: TaskData, initial: InitialAdapter | None, members: Sequence[Member]
) -> dict[str, Any]:
    """Returns the configuration of a task in its adapter, marked if it has seen several splits."""
    config = task.adapter_config()
    if not _adapters_of_other_splits(task, initial, members):
        return config
    return config | {"fold": MIXED_SPLITS, "split_seed": None}


def mark_metric(metric: dict[str, Any] | None, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns a metric on dev, marked if the adapter has seen some of it in training."""
    if metric is None or config.get("fold") != MIXED_SPLITS:
        return metric
    return metric | {"split": PARTLY_SEEN}


def warn(
    tasks: Sequence[TaskData], initial: InitialAdapter | None, members: Sequence[Member]
) -> None:
    """Warns about adapters that may have been trained on the development set of this run."""
    for task in tasks:
        for adapter in _adapters_of_other_splits(task, initial, members):
            logging.warning(
                "The adapter %s was trained on another split of the data of %r. It may have seen "
                "development examples of this run, whose scores are then too good. Use the same "
                "--split_seed, --folds and --fold.",
                *(adapter, name_of(task.adapter_config())),
            )


def _adapters_of_other_splits(
    task: TaskData, initial: InitialAdapter | None, members: Sequence[Member]
) -> list[str]:
    """Returns labels of the adapters that were trained on another split of this data."""
    own = task.adapter_config()
    if not own.get("fold") and own.get("split_seed") is None:
        return []
    return [
        label
        for label, config in _earlier_adapters(initial, members)
        if all(config.get(key) == own.get(key) for key in ("task", "name"))
        and any(config.get(key) != own.get(key) for key in SPLIT_KEYS)
    ]


def _earlier_adapters(
    initial: InitialAdapter | None, members: Sequence[Member]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields (label, configuration of a task) of each adapter that this run starts from."""
    if initial is None:
        yield from ((f"{member.name!r} of --fuse", member.config) for member in members)
        return
    config, label = initial.saved.config, f"in --init_from={initial.folder}"
    if not is_several(config):
        yield label, config
        return
    yield from ((label, config_of(config, name)) for name in names_of(config))
