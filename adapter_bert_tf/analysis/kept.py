"""What an analysis has found so far, so that the same command goes on where it was interrupted."""

import json
import os
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.run.output_files import command, read_record


class Kept:
    """The file `NAME.json` of an analysis.

    What is there of other weights or data is left out, and written over by the first `add`.

    Args:
      folder: `--output_dir`.
      name: of the analysis.
      identity: digest of what decides what it finds.

    Attributes:
      found: dict from a name to what was found; JSON values.
    """

    def __init__(self, folder: str, name: str, identity: str) -> None:
        self._path, self._identity = os.path.join(folder, f"{name}.json"), identity
        record = read_record(self._path) or {}
        found = record.get("found") if record.get("identity") == identity else None
        self.found: dict[str, Any] = found if isinstance(found, dict) else {}

    def add(self, name: str, value: Any) -> None:
        """Adds what was found, and writes the file."""
        self.found[name] = value
        record = {"command": command(), "identity": self._identity, "found": self.found}
        storage.write_text(self._path, json.dumps(record, indent=1))
