"""`--task_name` of several tasks: names separated by commas, or a YAML file."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import Command, Value
from adapter_bert_tf.config.settings import BY_NAME, settings_of
from adapter_bert_tf.config.yaml_file import as_text, read_yaml
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks import OWN, find_task

YAML = (".yaml", ".yml")
COMMON = ("data_source", "max_seq_length")  # Settings that all tasks share.
OWN_ROLES = (Role.TASK, Role.READING, Role.ASKED, Role.DECODING)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One of several tasks.

    Args:
      name: of its results and its adapter.
      settings: the task's own settings; `task_name` among them if the command knows tasks.
    """

    name: str
    settings: Mapping[str, Value]


def own_settings(command: Command) -> list[str]:
    """Returns the names of the settings that each of several tasks may have of its own."""
    without = COMMON if command.names_task else (*COMMON, "task_name")
    rows = settings_of(command)
    return [row.name for row in rows if row.role in OWN_ROLES and row.name not in without]


def is_several(task_name: str | None) -> bool:
    """Whether `--task_name` lists several tasks."""
    text = task_name or ""
    return "," in text or "=" in text or text.endswith(YAML)


def takes_subsets(task_name: str | None, command: Command) -> bool:
    """Whether a listed task trains on a subset of its examples."""
    return any(entry.settings.get("max_train_examples") for entry in _listed(task_name, command))


def paths_in(task_name: str | None, command: Command) -> list[str]:
    """Returns the data folders and files that `--task_name` names."""
    listed = _listed(task_name, command)
    return [str(path) for e in listed for n, path in e.settings.items() if BY_NAME[n].path]


def _listed(task_name: str | None, command: Command) -> list[Entry]:
    return entries(task_name, command) if task_name and is_several(task_name) else []


def entries(task_name: str, command: Command) -> list[Entry]:
    """Returns the tasks that `--task_name` lists. Raises `InputError` for repeated names."""
    is_file = task_name.endswith(YAML)
    if is_file:
        lines = "`name: {setting: value}` lines, one for each task"
        content = read_yaml(task_name, "--task_name", lines)
        listed = [
            _entry(task_name, name, {} if own is None else own, command)
            for name, own in content.items()
        ]
    else:
        listed = _entries_of_text(task_name, command)
    names = [entry.name.lower() for entry in listed]  # Names of folders and files.
    repeated = sorted({name for name in names if names.count(name) > 1})
    if listed and not repeated:
        return listed
    problem = "There is none. Write their names, separated by commas."
    if is_file:
        problem = "There is none. Write a line `name:` or `name: {setting: value}` for each."
    if repeated:
        hint = " In a YAML file two tasks can have one task_name, and names of their own."
        problem = f"Received twice: {preview(repeated)}.{hint if command.names_task else ''}"
    raise InputError(f"--task_name={preview(task_name)} must list tasks, each once. {problem}")


def _entries_of_text(text: str, command: Command) -> list[Entry]:
    listed = []
    for part in filter(str.strip, text.split(",")):
        name, equals, folder = part.partition("=")
        data_dir = {"data_dir": folder.strip()} if equals else {}
        known = {"task_name": _known_name(name.strip())} if command.names_task else {}
        listed.append(Entry(known.get("task_name", name.strip()), known | data_dir))
    return listed


def _known_name(name: str) -> str:
    return OWN if name.lower() == OWN else find_task(name).name


def _entry(path: str, name: Any, settings: Any, command: Command) -> Entry:
    """Returns a task of a file: a table if it has columns, else the task of its name."""
    known = own_settings(command)
    if not isinstance(name, str):
        raise InputError(
            f"{path}: the name of a task must be text. Received: {preview(name)}. Put it in quotes."
        )
    if not isinstance(settings, dict):
        raise InputError(
            f"{path} must hold a task's name and its settings, some of {known}, in each "
            f"entry. Received: {preview({name: settings})}"
        )
    if unknown := [key for key in settings if key not in known]:
        raise InputError(
            f"{path}: the task {preview(name)} can have no {preview(unknown)} of its own, only "
            f"some of {known}."
        )
    values = {key: _value(path, name, key, value) for key, value in settings.items()}
    if not command.names_task:
        return Entry(name, values)
    default = OWN if "text_a_column" in values else name
    return Entry(name, values | {"task_name": _known_name(str(values.get("task_name", default)))})


def _value(path: str, task: str, name: str, value: Any) -> Value:
    row, where = BY_NAME[name], f"{path}: {name} of {preview(task)}"
    if row.kind == "boolean" and not isinstance(value, bool):
        raise InputError(f"{where} must be true or false. Received: {preview(value)}")
    lowest = row.lowest or 0
    if row.kind == "integer" and (type(value) is not int or value < lowest):
        raise InputError(
            f"{where} must be a whole number, at least {lowest}. Received: {preview(value)}"
        )
    try:
        return value if row.kind in ("boolean", "integer") else as_text(value)
    except InputError as error:
        raise InputError(f"{where} {error}") from error
