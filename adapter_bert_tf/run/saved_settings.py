"""Settings that an earlier run or a saved adapter provides, where the user gave none."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.settings import BY_NAME, EARLIER, with_role
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.output.run_dir import OWNER, RECORD, SWEEP
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.contents import merge_settings
from adapter_bert_tf.store.multitask import TASKS, is_several, task_title

# Settings that have another name in an adapter's configuration.
DECIDED = ("dev_share",)  # In the configuration itself, as `split_seed` is.
RENAMED = {"null_allowed": "version_2_with_negative"}


def with_earlier_defaults(config: RunConfig) -> RunConfig:
    """Returns the configuration with the defaults that the run in the output folder started with.

    Settings that the user gave stay, and so do all settings of a run that will not be resumed.
    """
    folder = config.output.folder
    finished = storage.exists(os.path.join(folder, RECORD))
    if not config.actions.do_train or (config.actions.overwrite and finished):
        return config
    recorded = _recorded_settings(folder)
    if recorded is None:
        return config
    names = [name for name in EARLIER if name in config.values and not is_decided(config, name)]
    values = {name: recorded.get(name, EARLIER[name]) for name in names}
    return config.with_defaults(**{n: v for n, v in values.items() if _is_valid(n, v)})


def is_decided(config: RunConfig, name: str) -> bool:
    """Whether the user gave a value; `auto` leaves the choice."""
    return name in config.given and config.value(name) != "auto"


def _is_valid(name: str, value: Any) -> bool:
    """Whether a value from a file fits a setting whose default has changed."""
    row = BY_NAME[name]
    return isinstance(value, type(row.earlier)) and value in (row.choices or (True, False))


def _recorded_settings(folder: str) -> dict[str, Any] | None:
    """Returns the settings of the run in a folder; None if there is no run."""
    for name in (SWEEP, OWNER, RECORD):
        record = read_record(os.path.join(folder, name))
        if record is not None:
            settings = record if name == OWNER else record.get("flags")
            return settings if isinstance(settings, dict) else {}
    return None


def with_saved_settings(config: RunConfig, saved: SavedAdapter) -> RunConfig:
    """Returns the configuration with the settings of the adapter that is applied.

    Warns about given settings that differ from the adapter's.
    """
    own = {name: value for name, value in _settings_of(saved).items() if name in config.values}
    given = config.values_of(own.keys() & config.given)
    merged = merge_settings(own, given, "--")
    known = {n: value for n, value in merged.items() if n not in given}
    # A file may show another encoding than an adapter's table had, not than the user names.
    encoding = {n: known.pop(n) for n in ("encoding",) if n in known}
    return config.changed(**known).with_defaults(**encoding)


def reading_settings(task: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns how the data of one of several tasks is read, with the user's settings in place.

    Args:
      task: the task in an adapter's configuration.
      given: values of the user, which may differ from the adapter's: then it warns.
    """
    names = with_role(Role.READING, Role.DECODING)
    every = {**task.get("table", {}), **task.get("inputs", {})}
    recorded = {name: value for name, value in every.items() if name in names}
    return merge_settings(recorded, {n: given[n] for n in recorded.keys() & given.keys()})


def _settings_of(saved: SavedAdapter) -> dict[str, Any]:
    config = saved.config
    inputs = _common_inputs(config[TASKS]) if is_several(config) else config["inputs"]
    settings = {RENAMED.get(name, name): value for name, value in inputs.items()}
    settings |= config.get("table", {})
    settings |= {n: config[n] for n in DECIDED if n in config}
    names = (*with_role(Role.READING, Role.DECODING), *DECIDED)
    return {name: value for name, value in settings.items() if name in names}


def _common_inputs(tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the settings of the inputs that are equal for all tasks."""
    first = tasks[0]["inputs"]
    return {n: v for n, v in first.items() if all(task["inputs"].get(n) == v for task in tasks)}


def config_as_read(config: Mapping[str, Any], tasks: Sequence[TaskData]) -> dict[str, Any]:
    """Returns an adapter's configuration with its inputs as a run reads them; for its export.

    Tasks of the adapter that the run does not have stay unchanged.
    """
    inputs = {task.name: task.adapter_config()["inputs"] for task in tasks}
    if is_several(config):
        each = [_with_inputs(t, inputs.get(task_title(t), {})) for t in config[TASKS]]
        return {**config, TASKS: each}
    (own,) = inputs.values()
    return _with_inputs(config, own)


def _with_inputs(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {**config, "inputs": {**config["inputs"], **inputs}}
