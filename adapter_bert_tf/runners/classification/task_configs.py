"""The configuration of each of several tasks; without TensorFlow."""

from collections.abc import Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.methods.multitask import check_task_names
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.task_list import OWN_SETTINGS, Entry, entries
from adapter_bert_tf.errors import InputError, NotFound, error_context
from adapter_bert_tf.run.saved_settings import table_settings
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.multitask import TASKS, task_title
from adapter_bert_tf.task_types import chosen_type
from adapter_bert_tf.tasks import OWN, find_task, letters


def configs_of(config: RunConfig, saved: SavedAdapter | None = None) -> dict[str, RunConfig]:
    """Returns a dict from each task's name to its own configuration. Raises `InputError`.

    How a table is read is as in the training of the saved adapter, unless the user says otherwise.
    """
    listed = entries(config.data.task_name or "")
    with error_context(f"--task_name={preview(config.data.task_name)}"):
        check_task_names(tuple(entry.name for entry in listed))
    recorded = {task_title(task): task for task in saved.config[TASKS]} if saved else {}
    return {
        entry.name: _config_of(config, entry, len(listed) == 1, recorded.get(entry.name))
        for entry in listed
    }


def _config_of(
    config: RunConfig, entry: Entry, alone: bool, recorded: Mapping[str, Any] | None
) -> RunConfig:
    settings = dict(entry.settings)
    if recorded and "table" in recorded:
        given = config.values_of(config.given & set(OWN_SETTINGS)) | settings
        settings = table_settings(recorded, given) | settings
    if "data_dir" not in settings and config.data.data_source != "tfds" and config.data.data_dir:
        task_name = str(settings["task_name"])
        settings["data_dir"] = _folder_of(config.data.data_dir, entry.name, task_name, alone)
    config = config.with_defaults(**settings)
    encoding = {n: value for n, value in entry.settings.items() if n == "encoding"}
    return config.changed(**encoding)  # What the user names is not looked for in the file.


def _folder_of(parent: str, name: str, task_name: str, alone: bool) -> str:
    """Returns the folder of a task in the common folder, by the task's name in any case.

    The name that the user gave has precedence over that of GLUE's task. For one task alone the
    common folder may be its own.
    """
    names = [n.rstrip("/") for n in storage.listdir(parent)] if storage.isdir(parent) else []
    titles = () if task_name == OWN else (task_name, find_task(task_name).title)
    for candidates in ({name}, {name, *titles}):
        wanted = {letters(title) for title in candidates}
        matching = [n for n in names if letters(n) in wanted and storage.isdir(f"{parent}/{n}")]
        if len(matching) == 1:
            return f"{parent.rstrip('/')}/{matching[0]}"
    shipped = None if task_name == OWN else find_task(task_name).folder
    if alone or shipped:
        return shipped or parent
    raise NotFound(
        f"--data_dir={parent} must hold one folder for each task. Received for {name!r}: "
        f"{preview(matching) if matching else 'none'} of {preview(sorted(names))}. Name the "
        f"folder: --task_name=...,{task_name}=FOLDER"
    )


def check_types(configs: Mapping[str, RunConfig]) -> None:
    """Raises `InputError` for tasks of types that are not trained together."""
    types = {name: chosen_type(own.values) for name, own in configs.items()}
    if other := {name: kind for name, kind in types.items() if kind.mixes_as is None}:
        settings = [setting for kind in other.values() for setting in kind.settings]
        raise InputError(
            "Each of several tasks must have one label or one score per example. Received: "
            f"{', '.join(dict.fromkeys(settings))} of {preview(list(other))}"
        )
