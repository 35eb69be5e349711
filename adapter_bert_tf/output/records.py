"""JSON records of an output folder, and the fingerprint of a run that they are compared with."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.sanitize import parse_json, preview

CONTENT = "made of"  # In the owner record: what the training read.
# Settings that name adapters, or the runs that trained them.
OF_ADAPTERS = ("init_from", "fuse", "stack")


def read_record(path: str, limit: int = -1) -> dict[str, Any] | None:
    """Reads a JSON object of at most `limit` bytes; None if it is missing or damaged."""
    if not storage.exists(path):
        return None
    try:
        record = parse_json(storage.read_bytes(path, limit))
    except (ValueError, OSError):  # The latter for a folder.
        return None
    return record if isinstance(record, dict) else None


def write_record(path: str, values: Any) -> None:
    """Writes a JSON file atomically."""
    storage.write_text(path, json.dumps(values, indent=2) + "\n")


def digest(values: Any) -> str:
    """Returns the SHA-256 of values that JSON can hold."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def file_digest(path: str) -> str | None:
    """Returns the SHA-256 of a file; None if it is missing."""
    if not storage.exists(path) or storage.isdir(path):
        return None
    return hashlib.sha256(storage.read_bytes(path)).hexdigest()


@dataclasses.dataclass(frozen=True)
class Fingerprint:
    """What identifies a run, as values that JSON can hold.

    Args:
      run_id: digest of all that decides the training; the adapter records it.
      training: settings that decide the training.
      results: settings that decide only the results.
      defaults: values of the settings that a record does not name.
      actions: settings that must be true in the record of a finished run.
      is_evaluated: whether the run has results on a development set.
      content: all that the run reads, as `run.json` records it.
      compared: keys of `content` that must be equal in the record of a finished run.
      read: what the training reads, by the names that messages use.
      scored: what decides which weights are kept; records of earlier versions lack it.
      newer: keys of a content that records of earlier versions lack.
    """

    run_id: str
    training: Mapping[str, Any]
    results: Mapping[str, Any]
    defaults: Mapping[str, Any]
    actions: tuple[str, ...]
    is_evaluated: bool
    content: Mapping[str, Any]
    compared: tuple[str, ...]
    read: Mapping[str, Any]
    scored: Mapping[str, Any]
    newer: tuple[str, ...] = ()

    def owner_record(self) -> dict[str, Any]:
        """Returns the record that marks checkpoints as this run's."""
        return {**self.training, **self.results, CONTENT: {**self.read, **self.scored}}

    def changed_settings(self, owner: Mapping[str, Any]) -> list[str]:
        """Describes the settings of the training that differ from an owner record."""
        recorded = {**self.defaults, **owner}
        return [
            f"--{name}: {preview(as_compared(name, recorded[name]))} there, {value!r} here"
            for name, value in self.training.items()
            if as_compared(name, recorded[name]) != value
        ]

    def changed_content(self, owner: Mapping[str, Any]) -> list[str]:
        """Names what the training reads that differs from an owner record."""
        recorded = owner.get(CONTENT)
        recorded = recorded if isinstance(recorded, dict) else {}
        scored = {name: value for name, value in self.scored.items() if name in recorded}
        current = {**self.read, **scored}
        return [n for n, value in current.items() if not self._is_same(recorded.get(n), value)]

    def is_recorded_in(self, record: Mapping[str, Any] | None) -> bool:
        """Whether a `run.json` is the complete record of this run."""
        if not record or not is_complete(record, self.is_evaluated):
            return False
        settings = record["flags"]
        recorded = {**self.defaults, **settings}
        current = {**self.training, **self.results}
        return (
            settings.keys() <= self.defaults.keys()
            and all(as_compared(name, recorded[name]) == value for name, value in current.items())
            and all(recorded.get(name) for name in self.actions)
            and all(
                self._is_same(record.get(name), self.content.get(name)) for name in self.compared
            )
        )

    def _is_same(self, recorded: Any, value: Any) -> bool:
        """Whether a recorded content is equal, apart from keys that are newer than the record."""
        if isinstance(recorded, dict) and isinstance(value, dict):
            value = {n: v for n, v in value.items() if n in recorded or n not in self.newer}
        return bool(recorded == value)


def is_complete(record: Mapping[str, Any], evaluated: bool) -> bool:
    """Whether a `run.json` has all that others read of it, with results if `evaluated`."""
    parameters, results = record.get("parameters"), record.get("eval")
    counts = parameters if isinstance(parameters, dict) else {}
    numbers = [record.get(name) for name in ("train_seconds", "examples_per_second")]
    numbers += [counts.get(name) for name in ("trained", "total")]
    if evaluated:
        numbers += results.values() if isinstance(results, dict) and results else [None]
    return isinstance(record.get("flags"), dict) and all(
        isinstance(number, int | float) for number in numbers
    )


def as_compared(name: str, value: Any) -> Any:
    """The value of a setting as runs compare it: a path has no slash at its end.

    An adapter to start from is the same as the run that trained it.
    """
    if not isinstance(value, str):
        return value
    if name in OF_ADAPTERS:
        paths = [path.strip().rstrip("/") for path in value.split(",")]
        return ",".join(path.removesuffix("/adapter") for path in paths)
    return value.rstrip("/") or value
