"""Lists of Python as files that the commands read."""

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.config.setting import Value


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
        digest = hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()[:12]
        return os.path.join(folder, f"data-{digest}")
