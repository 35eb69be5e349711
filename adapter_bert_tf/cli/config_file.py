"""`--config`: settings from a YAML file, or from the `run.json` of a run to repeat."""

import os
import pathlib
from collections.abc import Collection
from typing import Any

from absl import flags

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.section_list import SECTIONS
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.config.settings import BY_NAME, EARLIER, NOT_REPEATED, settings_of, with_role
from adapter_bert_tf.config.yaml_file import as_text, read_yaml
from adapter_bert_tf.errors import InputError, Unsupported
from adapter_bert_tf.sanitize import preview, truncate

# The paper's experiments: in a wheel, and in a clone.
GIVEN = "gcs_configs"
PLACES = [pathlib.Path(__file__).parents[up] / GIVEN for up in (1, 2)]


def apply_config_file(parsed: flags.FlagValues) -> None:
    """Sets the flags that `--config` names and the command line does not. Raises `InputError`."""
    path = parsed.config
    if not path:
        return
    settings = settings_in_file(path)
    if settings.get("config") is not None:
        raise Unsupported(
            f"{path}: a file of settings cannot include another. Copy the lines of "
            f"{preview(settings['config'])} instead."
        )
    if unknown := [name for name in settings if name not in parsed]:
        raise InputError(f"{path}: unknown flags {preview(unknown)}.{_owner(unknown)}")
    for name, value in settings.items():
        if not parsed[name].present and value is not None:
            _set(parsed[name], value, path)


def _owner(unknown: Collection[str]) -> str:
    """Returns a sentence with the command that has all of these settings, if there is one."""
    for command in Command:
        if {*unknown} <= {row.name for row in settings_of(command)}:
            return f" They belong to {command.value}.py: give it the file."
    return ""


def settings_in_file(path: str) -> dict[str, Any]:
    """Reads a dict from setting to value from a file of `--config`. Raises `InputError`."""
    content = read_yaml(_locate(path), "--config")
    recorded = content.get("flags")
    if isinstance(recorded, dict):
        return _repeated(recorded)
    return _without_sections(content, path)


def _without_sections(content: dict[str, Any], path: str) -> dict[str, Any]:
    """Returns the settings of a file, in which sections are optional. Raises `InputError`."""
    flat: dict[str, Any] = {}
    for section, value in content.items():
        is_section = section in SECTIONS and isinstance(value, dict)
        for name, own in value.items() if is_section else [(section, value)]:
            if is_section and name in BY_NAME and (right := BY_NAME[name].section) != section:
                raise InputError(
                    f"{path}: {name} belongs to the section {right}. Received: {section}."
                )
            if name in flat:
                raise InputError(f"{path}: {preview(name)} has two values. Remove one.")
            flat[name] = own
    return flat


def _locate(path: str) -> str:
    """Returns the path of a file, or of one of `gcs_configs/` from any working directory."""
    folder, name = os.path.split(path)
    if folder in ("", GIVEN) and not os.path.exists(path):
        return str(next((place / name for place in PLACES if (place / name).exists()), path))
    return path


def _repeated(recorded: dict[str, Any]) -> dict[str, Any]:
    """Returns settings that repeat a recorded run; without training it reads its adapter."""
    # The record of a run with --init_from has no method: the initial adapter decides it.
    left_out = with_role(Role.METHOD)
    recorded = {n: v for n, v in EARLIER.items() if n not in left_out} | recorded
    settings = {name: value for name, value in recorded.items() if name not in NOT_REPEATED}
    if not settings.get("do_train"):
        default = os.path.join(str(recorded.get("output_dir") or ""), "adapter")
        settings["adapter_dir"] = recorded.get("adapter_dir") or default
    return settings


def _set(flag: flags.Flag, value: Any, path: str) -> None:
    if isinstance(value, bool) and not flag.boolean:
        raise InputError(
            f"{path}: {flag.name} is true or false there. If it is text, put it in quotes."
        )
    try:
        flag.parse(value if isinstance(value, bool) else as_text(value))
    except InputError as error:
        raise InputError(f"{path}: {flag.name} {error}") from error
    except flags.IllegalFlagValueError as error:
        raise InputError(f"{path}: {truncate(str(error), 400)}") from error
