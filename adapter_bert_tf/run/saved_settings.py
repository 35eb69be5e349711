"""What a saved adapter says of its inputs: the defaults of a run that applies it."""

from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf.config import table
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.multitask import TASKS, is_several, task_title

# Settings of an adapter whose flags have another name.
RENAMED = {"null_allowed": "version_2_with_negative"}


def with_saved_settings(flags: RunFlags, saved: SavedAdapter) -> RunFlags:
    """The flags, with the adapter's own settings where the user gave none; others are named.

    Args:
      flags: of a run that does not train.
      saved: the adapter that it applies.
    """
    theirs = {name: value for name, value in _settings(saved).items() if name in flags.values}
    other = [
        f"--{name}={flags.values[name]}, the adapter {value}"
        for name, value in theirs.items()
        if name in flags.given and flags.values[name] != value
    ]
    if other:
        logging.warning("Not as the adapter was trained: %s.", "; ".join(other))
    return flags.changed(**{n: value for n, value in theirs.items() if n not in flags.given})


def as_read(config: Mapping[str, Any], tasks: Sequence[Any]) -> dict[str, Any]:
    """What a saved adapter says of itself, with its inputs as a run reads them; for its export.

    Args:
      config: of the adapter. Of several tasks, those that the run has not keep what they have.
      tasks: the run's `TaskData`.
    """
    ours = {task.name: task.adapter_config()["inputs"] for task in tasks}
    if is_several(config):
        return {**config, TASKS: [_reading(t, ours.get(task_title(t), {})) for t in config[TASKS]]}
    (inputs,) = ours.values()
    return _reading(config, inputs)


def _reading(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {**config, "inputs": {**config["inputs"], **inputs}}


def _settings(saved: SavedAdapter) -> dict[str, Any]:
    """Dict from flag to value."""
    config = saved.config
    inputs = _of_all(config[TASKS]) if is_several(config) else config["inputs"]
    settings = {RENAMED.get(name, name): value for name, value in inputs.items()}
    settings |= config.get("table", {})
    names = table.with_role(Role.READING, Role.DECODING)
    return {name: value for name, value in settings.items() if name in names}


def _of_all(tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The inputs' settings that are the same for all of several tasks."""
    first = tasks[0]["inputs"]
    return {n: v for n, v in first.items() if all(task["inputs"].get(n) == v for task in tasks)}
