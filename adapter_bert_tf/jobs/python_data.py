"""Lists and configurations of Python as files that the commands read."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.config.setting import Value
from adapter_bert_tf.errors import InputError, error_context
from adapter_bert_tf.sanitize import preview


@dataclasses.dataclass(frozen=True)
class Given:
    """The arguments of `abt.train` that hold data; see there."""

    texts: Any
    labels: Any
    others: Any
    dev: Any
    columns: tuple[str | None, ...]


@dataclasses.dataclass(frozen=True)
class PythonData:
    """Data as files, and how they are read.

    Args:
      files: dict from name to content.
      settings: dict from name to value, of the command that reads the files.
      paths: dict from the settings that name files to their names; "" for the folder of all.
    """

    files: Mapping[str, bytes]
    settings: Mapping[str, Value]
    paths: Mapping[str, str] = dataclasses.field(default_factory=lambda: {"data_dir": ""})

    def folder_in(self, folder: str) -> str:
        """Returns the subfolder of the files, named by their content."""
        return os.path.join(folder, f"data-{_digest(repr(sorted(self.files.items())).encode())}")


def configuration_files(options: Mapping[str, Any]) -> dict[str, tuple[str, bytes]]:
    """Returns (name, content) of a file for each option that is an object and names a file else.

    These are `adapter`, a `ModuleConfig` or a dict of its fields, and `sweep`, a dict of values.
    Raises `InputError`.
    """
    contents: dict[str, bytes] = {}
    if isinstance(adapter := options.get("adapter"), Mapping):
        with error_context("adapter"):
            adapter = ModuleConfig.from_dict(adapter)
    if isinstance(adapter, ModuleConfig):
        contents["adapter"] = adapter.to_json().encode()
    if isinstance(sweep := options.get("sweep"), Mapping):
        try:
            contents["sweep"] = json.dumps(dict(sweep), indent=2, default=_as_list).encode()
        except (TypeError, ValueError) as error:
            raise InputError(
                "sweep is a file, or a dict from settings to lists of texts, numbers and None. "
                f"Received: {preview(sweep)}",
                "sweep",
            ) from error
    return {
        name: (f"{name}-{_digest(content)}.json", content) for name, content in contents.items()
    }


def _as_list(values: Any) -> Any:
    """An array, a number of NumPy, or a range, as plain values. Raises `TypeError` for others."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
