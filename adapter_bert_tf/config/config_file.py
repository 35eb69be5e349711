"""`--config`: flags from a YAML file, or from the `run.json` of a run to repeat."""

import datetime
import os
import pathlib
import sys
from collections.abc import Collection
from typing import Any

from absl import flags

from adapter_bert_tf.config import table
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Command
from adapter_bert_tf.config.yaml_values import parse_yaml
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview, truncate

SCALARS = (str, int, float, datetime.date)
LARGEST_FILE = 4 << 20
# The paper's experiments: in a wheel, and in a clone.
GIVEN = "gcs_configs"
PLACES = [pathlib.Path(__file__).parents[up] / GIVEN for up in (1, 2)]


def apply_config_file(values: flags.FlagValues) -> None:
    """Sets the flags that `--config` names and the command line does not.

    Args:
      values: `absl.flags.FLAGS`, parsed.

    Raises:
      InputError: when the file cannot be read, or names an unknown flag or a wrong value.
    """
    if not values.config:
        return
    settings = settings_of(values.config)
    if settings.get("config") is not None:
        raise InputError(
            f"{values.config}: a file of flags cannot name another. Received: config: "
            f"{preview(settings['config'])}. Copy its lines, and remove this one."
        )
    unknown = [name for name in settings if name not in values]
    if unknown:
        raise InputError(f"{values.config}: unknown flags {preview(unknown)}.{_whose(unknown)}")
    for name, value in settings.items():
        if not values[name].present and value is not None:
            _set(values[name], value, values.config)


def _whose(unknown: Collection[str]) -> str:
    """Which command has all of these flags, if one has."""
    having = (c for c in Command if {*unknown} <= {row.name for row in table.rows_of(c)})
    command = next(having, None)
    return f" They are of {command.value}.py: give it the file." if command else ""


def settings_of(path: str) -> dict[str, Any]:
    """Dict from flag to value, as a file of `--config` says it. Raises `InputError`."""
    settings = read_yaml(_found(path), "--config")
    recorded = settings.get("flags")
    return _repeated(recorded) if isinstance(recorded, dict) else settings


def _found(path: str) -> str:
    """The path of a file, or of one of `gcs_configs/` that is named from any folder."""
    folder, name = os.path.split(path)
    if folder in ("", GIVEN) and not os.path.exists(path):
        return str(next((place / name for place in PLACES if (place / name).exists()), path))
    return path


def _repeated(recorded: dict[str, Any]) -> dict[str, Any]:
    """The flags that repeat the run of a `run.json`; what did not train reads its adapter."""
    # A record that begins from an adapter leaves out the method, which that adapter decides.
    left_out = table.with_role(Role.METHOD)
    recorded = {n: v for n, v in table.EARLIER.items() if n not in left_out} | recorded
    settings = {name: value for name, value in recorded.items() if name not in table.NOT_REPEATED}
    if not settings.get("do_train"):
        out = recorded.get("output_dir")
        settings["adapter_dir"] = recorded.get("adapter_dir") or os.path.join(
            out if isinstance(out, str) else "", "adapter"
        )
    return settings


def _set(flag: flags.Flag, value: Any, path: str) -> None:
    if isinstance(value, bool) and not flag.boolean:
        raise InputError(
            f"{path}: {flag.name} is true or false there. If it is meant as text, put it in quotes."
        )
    try:
        flag.parse(value if isinstance(value, bool) else text_of(value))
    except InputError as error:
        raise InputError(f"{path}: {flag.name} {error}") from error
    except flags.IllegalFlagValueError as error:
        raise InputError(f"{path}: {truncate(str(error), 400)}") from error


def text_of(value: Any) -> str:
    """A value of a file as it would stand on the command line. Raises `InputError`."""
    is_one = isinstance(value, SCALARS)
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        is_one = False  # Python does not write out numbers of 4,300 digits.
    if not is_one or "\0" in str(value):
        raise InputError(f"must be one value. Received: {preview(value)}")
    return str(value)


def read_yaml(path: str, flag: str, wanted: str = "`flag: value` lines") -> dict[Any, Any]:
    """The dict in a YAML file. Raises `InputError`, naming `flag` and what is `wanted`."""
    try:
        settings = parse_yaml(_read_text(path, flag))
    except (OSError, ValueError) as error:
        said = truncate(str(error), 400)
        raise InputError(f"Cannot read {flag}={path}: {said}") from error
    settings = {} if settings is None else settings
    if not isinstance(settings, dict):
        raise InputError(f"{path} must hold {wanted}. Received: {preview(settings)}")
    return settings


def _read_text(path: str, flag: str) -> str:
    if "://" not in path:
        with open(path, "rb") as file:
            return _decoded(file.read(LARGEST_FILE + 1))
    import tensorflow as tf

    from adapter_bert_tf import storage

    try:
        return _decoded(storage.read_bytes(path, LARGEST_FILE + 1))
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read {flag}={path}: {storage.reason(error)}") from error


def _decoded(content: bytes) -> str:
    if len(content) > LARGEST_FILE:
        raise ValueError(f"it has more than {LARGEST_FILE:,} bytes")
    return content.decode("utf-8")
