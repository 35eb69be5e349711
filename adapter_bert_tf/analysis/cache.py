"""Cache of an analysis, so that an interrupted command continues."""

import json
import os
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Occupied
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.output.records import read_record


class AnalysisCache:
    """The file `NAME.json` of an analysis; `results` maps a name to JSON values.

    `identity` is a digest of everything that determines the results. Results with another identity
    are ignored; the first `add` replaces them and prints a line. Raises `InputError` if the file
    exists and no analysis wrote it.
    """

    def __init__(self, folder: str, name: str, identity: str) -> None:
        self._path, self._identity = os.path.join(folder, f"{name}.json"), identity
        record = read_record(self._path) or {}
        if storage.exists(self._path) and not (
            isinstance(record.get("found"), dict) and "identity" in record
        ):
            raise Occupied(
                f"{self._path} exists, and no analysis wrote it, or it is damaged. Move it away, "
                "or choose another --output_dir."
            )
        self._is_stale = bool(record) and record["identity"] != identity
        self.results: dict[str, Any] = {} if self._is_stale else record.get("found", {})

    def add(self, name: str, value: Any) -> None:
        """Adds a result and writes the file."""
        if self._is_stale:
            print(f"Replaced: {self._path}, of other weights, data or settings", flush=True)
            self._is_stale = False
        self.results[name] = value
        record = {"command": command(), "identity": self._identity, "found": self.results}
        storage.write_text(self._path, json.dumps(record, indent=1))
