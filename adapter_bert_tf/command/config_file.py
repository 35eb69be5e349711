"""`--config`: flags from a YAML file, or from the `run.json` of a run to repeat."""

import os
from typing import Any

from absl import flags

from adapter_bert_tf.command import table
from adapter_bert_tf.errors import InputError


def apply_config_file(values: flags.FlagValues) -> None:
    """Sets the flags that `--config` names and the command line does not.

    Args:
      values: `absl.flags.FLAGS`, parsed.

    Raises:
      InputError: when the file cannot be read, or names an unknown flag or a wrong value.
    """
    if not values.config:
        return
    settings = _settings(values.config)
    unknown = sorted(str(name) for name in settings if name not in values)
    if unknown:
        raise InputError(f"{values.config}: unknown flags {unknown}.")
    for name, value in settings.items():
        if not values[name].present and value is not None:
            _set(values[name], value, values.config)


def _settings(path: str) -> dict[str, Any]:
    """Dict from flag to value, as the file says it."""
    settings = read_yaml(path, "--config")
    recorded = settings.get("flags")
    return _repeated(recorded) if isinstance(recorded, dict) else settings


def _repeated(recorded: dict[str, Any]) -> dict[str, Any]:
    """The flags that repeat the run of a `run.json`; what did not train reads its adapter."""
    settings = {name: value for name, value in recorded.items() if name not in table.NOT_REPEATED}
    if not settings.get("do_train"):
        settings["adapter_dir"] = recorded.get("adapter_dir") or os.path.join(
            recorded.get("output_dir") or "", "adapter"
        )
    return settings


def _set(flag: flags.Flag, value: Any, path: str) -> None:
    if isinstance(value, list | dict):
        raise InputError(f"{path}: {flag.name} must be one value. Received: {value!r}")
    try:
        flag.parse(value if isinstance(value, bool) else str(value))
    except flags.IllegalFlagValueError as error:
        raise InputError(f"{path}: {error}") from error


def read_yaml(path: str, flag: str) -> dict[Any, Any]:
    """The dict in a YAML file. Raises `InputError`, naming `flag`."""
    import yaml

    try:
        settings = yaml.safe_load(_read_text(path, flag)) or {}
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"Cannot read {flag}={path}: {error}") from error
    if not isinstance(settings, dict):
        raise InputError(f"{path} must hold `flag: value` lines. Received: {settings!r}")
    return settings


def _read_text(path: str, flag: str) -> str:
    if "://" not in path:
        with open(path, encoding="utf-8") as file:
            return file.read()
    import tensorflow as tf

    from adapter_bert_tf import storage

    try:
        text: str = storage.read_text(path)
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read {flag}={path}: {storage.reason(error)}") from error
    return text
