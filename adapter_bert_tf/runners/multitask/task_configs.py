"""The configuration of each of several tasks; without TensorFlow."""

from collections.abc import Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.methods.multitask import check_task_names
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.task_list import Entry, entries, own_settings
from adapter_bert_tf.errors import NotFound, error_context
from adapter_bert_tf.run.saved_settings import reading_settings
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.multitask import TASKS, task_title
from adapter_bert_tf.tasks import OWN, find_task, letters


def configs_of(config: RunConfig, saved: SavedAdapter | None = None) -> dict[str, RunConfig]:
    """Returns a dict from each task's name to its own configuration. Raises `InputError`.

    The data is read as in the training of the saved adapter, unless the user says otherwise.
    """
    listed = entries(config.data.task_name or "", config.command)
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
    settings, own = dict(entry.settings), own_settings(config.command)
    if recorded:
        given = config.values_of(config.given & set(own)) | settings
        known = reading_settings(recorded, given)
        settings = {name: value for name, value in known.items() if name in own} | settings
    if "data_dir" not in settings and config.data.data_source != "tfds" and config.data.data_dir:
        task_name = settings.get("task_name")
        settings["data_dir"] = _folder_of(config.data.data_dir, entry.name, task_name, alone)
    named = {} if config.names_task else {"adapter_name": entry.name}
    config = config.with_defaults(**settings, **named)
    encoding = {n: value for n, value in entry.settings.items() if n == "encoding"}
    return config.changed(**encoding)  # What the user names is not looked for in the file.


def _folder_of(parent: str, name: str, task_name: Any, alone: bool) -> str:
    """Returns the folder of a task in the common folder, by the task's name in any case.

    The name that the user gave has precedence over `task_name`, that of a known task. For one task
    alone the common folder may be its own.
    """
    known = None if task_name in (None, OWN) else find_task(str(task_name))
    names = [n.rstrip("/") for n in storage.listdir(parent)] if storage.isdir(parent) else []
    titles = (known.name, known.title) if known else ()
    for candidates in ({name}, {name, *titles}):
        wanted = {letters(title) for title in candidates}
        matching = [n for n in names if letters(n) in wanted and storage.isdir(f"{parent}/{n}")]
        if len(matching) == 1:
            return f"{parent.rstrip('/')}/{matching[0]}"
    shipped = known.folder if known else None
    if alone or shipped:
        return shipped or parent
    raise NotFound(
        f"--data_dir={parent} must hold one folder for each task. Received for {name!r}: "
        f"{preview(matching) if matching else 'none'} of {preview(sorted(names))}. Name the "
        f"folder: --task_name=...,{task_name or name}=FOLDER"
    )
