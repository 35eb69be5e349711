"""`--task_name` of several tasks: names with commas between, or a YAML file."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from adapter_bert_tf.config import table
from adapter_bert_tf.config.config_file import read_yaml, text_of
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Command, Value
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks import OWN, find_task

YAML = (".yaml", ".yml")


@dataclasses.dataclass(frozen=True)
class Entry:
    """A task of several.

    Args:
      name: by which its results and its adapter are called.
      settings: pairs of flag and value, where they are the task's own; `task_name` is among them.
    """

    name: str
    settings: tuple[tuple[str, Value], ...]


def is_several(task_name: str | None) -> bool:
    """Whether `--task_name` is written for several tasks."""
    text = task_name or ""
    return "," in text or "=" in text or text.endswith(YAML)


def takes_subsets(task_name: str | None) -> bool:
    """Whether a file lists tasks of which only some examples are trained on."""
    listed = entries(task_name) if task_name and is_several(task_name) else []
    return any(dict(entry.settings).get("max_train_examples") for entry in listed)


def folders(task_name: str | None) -> list[str]:
    """The folders of data that `--task_name` names."""
    listed = entries(task_name) if task_name and is_several(task_name) else []
    return [str(value) for entry in listed for n, value in entry.settings if n == "data_dir"]


def entries(task_name: str) -> list[Entry]:
    """The tasks that `--task_name` lists.

    Raises:
      InputError: for an unknown task, two of one name, or a file that is no list of tasks.
    """
    found = _of_file(task_name) if task_name.endswith(YAML) else _of_text(task_name)
    names = [entry.name.lower() for entry in found]  # Folders and files are called so.
    twice = sorted({name for name in names if names.count(name) > 1})
    if not found or twice:
        what = _said_of_none(task_name)
        if twice:
            what = (
                f"Received twice: {preview(twice)}. In a YAML file two can have one task_name, and "
                "names of their own."
            )
        raise InputError(f"--task_name={preview(task_name)} must list tasks, each once. {what}")
    return found


def _said_of_none(task_name: str) -> str:
    if task_name.endswith(YAML):
        return "There is none. Write a line `name:` or `name: {flag: value}` for each."
    return "There is none. Write their names with commas between."


def _of_text(text: str) -> list[Entry]:
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    return [
        Entry(name, (("task_name", name), *((("data_dir", folder.strip()),) if equals else ())))
        for name, equals, folder in ((_known(n.strip()), e, f) for n, e, f in pairs)
    ]


def _known(name: str) -> str:
    """A task's name as its row has it. Raises `InputError`."""
    return OWN if name.lower() == OWN else find_task(name).name


def _of_file(path: str) -> list[Entry]:
    listed = read_yaml(path, "--task_name", "`name: {flag: value}` lines, one a task")
    return [
        _entry(path, name, {} if settings is None else settings)
        for name, settings in listed.items()
    ]


def _entry(path: str, name: Any, settings: Any) -> Entry:
    """One task of a file: a dict of flags. With columns it is a table, else the task of its name.

    Raises `InputError`.
    """
    known = _settings_of_tasks()
    unknown = [key for key in settings if key not in known] if isinstance(settings, dict) else []
    if not isinstance(name, str):
        raise InputError(
            f"{path}: the name of a task must be text. Received: {preview(name)}. Put it in quotes."
        )
    if unknown:
        raise InputError(
            f"{path}: the task {preview(name)} can have no {preview(unknown)} of its own, only "
            f"some of {list(known)}. Mend the name, or leave it out."
        )
    if not isinstance(settings, dict):
        raise InputError(
            f"{path} must hold a task's name and its settings in each entry, some of "
            f"{list(known)}. Received: {preview({name: settings})}"
        )
    values = {key: _value(path, name, key, value) for key, value in settings.items()}
    if "task_name" not in values:
        values["task_name"] = OWN if "text_a_column" in values else name
    values["task_name"] = _known(str(values["task_name"]))
    return Entry(name, tuple(values.items()))


def _settings_of_tasks() -> Sequence[str]:
    """Names of the flags that each task may have for itself."""
    common = ("data_source", "max_seq_length")
    names = table.with_role(Role.TASK, Role.READING)
    rows = {row.name for row in table.rows_of(Command.CLASSIFIER)}
    return [name for name in names if name in rows and name not in common]


def _value(path: str, task: str, name: str, value: Any) -> Value:
    """A value of the type that the flag has. Raises `InputError`."""
    row = table.row_of(name)
    if row.kind == "boolean" and not isinstance(value, bool):
        raise InputError(
            f"{path}: {name} of {preview(task)} must be true or false. Received: {preview(value)}"
        )
    if row.kind == "integer" and (type(value) is not int or value < (row.lowest or 0)):
        raise InputError(
            f"{path}: {name} of {preview(task)} must be a whole number, at least "
            f"{row.lowest or 0}. Received: {preview(value)}"
        )
    try:
        return value if row.kind in ("boolean", "integer") else text_of(value)
    except InputError as error:
        raise InputError(f"{path}: {name} of {preview(task)} {error}") from error
