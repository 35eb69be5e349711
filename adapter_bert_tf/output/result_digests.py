"""The results of a run, as it leaves them: a later command sees what became of them."""

import fnmatch
import hashlib
import os
from collections.abc import Collection
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.serving.saved_model_dir import EXPORT, state_of

EVALUATION = "eval_results.txt"


def note(folder: str, patterns: Collection[str], export_dir: str | None) -> dict[str, Any]:
    """What `run.json` says of the results that are there.

    Args:
      folder: `--output_dir`.
      patterns: of the files of results in it, besides those of an evaluation.
      export_dir: of the SavedModel, if the run writes one.

    Returns:
      dict from file to SHA-256; of a SavedModel a dict, as its weights are too large for that.
    """
    names = storage.listdir(folder) if storage.isdir(folder) else []
    results = [n for n in names if any(fnmatch.fnmatchcase(n, p) for p in (EVALUATION, *patterns))]
    found = {name: _digest(os.path.join(folder, name)) for name in sorted(results)}
    exported = {EXPORT: state_of(export_dir)} if export_dir else {}
    return {name: digest for name, digest in found.items() if digest} | exported


def changed(noted: Any, folder: str, export_dir: str) -> list[str]:
    """Paths of the results that are gone, or are not any more what was noted.

    Args:
      noted: what `note` returned; None of a record from before there was one.
      folder: `--output_dir`.
      export_dir: of the SavedModel.
    """
    if noted is None:
        return []
    if not isinstance(noted, dict):
        return [folder]
    there = set(storage.listdir(folder))
    files = {name: os.path.join(folder, name) for name in noted if name != EXPORT}
    lost = [
        printable(path)
        for name, path in files.items()
        if name not in there or _digest(path) != noted[name]
    ]
    other_model = EXPORT in noted and state_of(export_dir) != noted[EXPORT]
    return lost + [export_dir] * other_model


def files_of(noted: Any, folder: str) -> list[str]:
    """Names of the files that are still what was noted; a SavedModel is none of them."""
    names = noted.keys() - {EXPORT} if isinstance(noted, dict) else set()
    there = set(storage.listdir(folder)) & names if names else set()
    return sorted(n for n in there if _digest(os.path.join(folder, n)) == noted[n])


def replaced(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Names of the files that two notes of one folder have, with another content each."""
    return [name for name in before if name in now and name != EXPORT and before[name] != now[name]]


def _digest(path: str) -> str | None:
    """SHA-256 of a file; None if there is none."""
    if not storage.exists(path) or storage.isdir(path):
        return None
    return hashlib.sha256(storage.read_bytes(path)).hexdigest()
