"""Settings that a saved adapter brings: the defaults of a run that applies it."""

from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.settings import with_role
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.multitask import TASKS, is_several, task_title

# Settings that have another name in an adapter's configuration.
RENAMED = {"null_allowed": "version_2_with_negative"}


def with_saved_settings(config: RunConfig, saved: SavedAdapter) -> RunConfig:
    """The configuration with the adapter's settings where the user gave none.

    Warns about given values that differ from the adapter's.

    Args:
      config: of a run that does not train.
      saved: the adapter that it applies.
    """
    own = {name: value for name, value in _settings(saved).items() if name in config.values}
    different = [
        f"--{name}={config.value(name)}, the adapter {value}"
        for name, value in own.items()
        if name in config.given and config.value(name) != value
    ]
    if different:
        logging.warning("Not as the adapter was trained: %s.", "; ".join(different))
    return config.changed(**{n: value for n, value in own.items() if n not in config.given})


def config_as_read(config: Mapping[str, Any], tasks: Sequence[TaskData]) -> dict[str, Any]:
    """An adapter's configuration with its inputs as a run reads them; for its export.

    Args:
      config: of the adapter. Of several tasks, those that the run does not have stay unchanged.
      tasks: of the run.
    """
    inputs = {task.name: task.adapter_config()["inputs"] for task in tasks}
    if is_several(config):
        each = [_with_inputs(t, inputs.get(task_title(t), {})) for t in config[TASKS]]
        return {**config, TASKS: each}
    (own,) = inputs.values()
    return _with_inputs(config, own)


def _with_inputs(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {**config, "inputs": {**config["inputs"], **inputs}}


def _settings(saved: SavedAdapter) -> dict[str, Any]:
    """Dict from setting to value."""
    config = saved.config
    inputs = _common_inputs(config[TASKS]) if is_several(config) else config["inputs"]
    settings = {RENAMED.get(name, name): value for name, value in inputs.items()}
    settings |= config.get("table", {})
    names = with_role(Role.READING, Role.DECODING)
    return {name: value for name, value in settings.items() if name in names}


def _common_inputs(tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Settings of the inputs that are equal for all of several tasks."""
    first = tasks[0]["inputs"]
    return {n: v for n, v in first.items() if all(task["inputs"].get(n) == v for task in tasks)}
