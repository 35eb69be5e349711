"""What an analysis has found so far, so that the same command goes on where it was interrupted."""

import json
import os
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.output.records import read_record


class AnalysisCache:
    """The file `NAME.json` of an analysis.

    What is there of other weights, data or settings is left out, and written over by the first
    `add`, which says so.

    Args:
      folder: `--output_dir`.
      name: of the analysis.
      identity: digest of what decides what it finds.

    Attributes:
      found: dict from a name to what was found; JSON values.

    Raises:
      InputError: when a file of that name is somebody else's.
    """

    def __init__(self, folder: str, name: str, identity: str) -> None:
        self._path, self._identity = os.path.join(folder, f"{name}.json"), identity
        record = self._read()
        self._is_of_others = bool(record) and record["identity"] != identity
        self.found: dict[str, Any] = {} if self._is_of_others else record.get("found", {})

    def _read(self) -> dict[str, Any]:
        """What an analysis left here; empty if none did."""
        if not storage.exists(self._path):
            return {}
        record = read_record(self._path) or {}
        if not (isinstance(record.get("found"), dict) and "identity" in record):
            raise InputError(
                f"{self._path} is there, and no analysis wrote it, or it is damaged. Move it away, "
                "or choose another --output_dir."
            )
        return record

    def add(self, name: str, value: Any) -> None:
        """Adds what was found, and writes the file."""
        if self._is_of_others:
            print(f"Replaced: {self._path}, of other weights, data or settings", flush=True)
            self._is_of_others = False
        self.found[name] = value
        record = {"command": command(), "identity": self._identity, "found": self.found}
        storage.write_text(self._path, json.dumps(record, indent=1))
