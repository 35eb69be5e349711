"""How an adapter was made from others without training: in its config and on its card."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.store.checks import DERIVED, OPERATIONS
from adapter_bert_tf.store.contents import name_of
from adapter_bert_tf.store.weights import MAX_FILE_BYTES, digest

RUN_FIELDS = ("run", "global_step")  # True of the weights of one run only.


def derive(
    config: Mapping[str, Any],
    operation: str,
    sources: Sequence[Mapping[str, Any]],
    **options: Any,
) -> dict[str, Any]:
    """The config of an adapter that one of `OPERATIONS` made from sources; not that of a run."""
    rest = {key: value for key, value in config.items() if key not in RUN_FIELDS}
    derived: dict[str, Any] = {"operation": operation, "sources": [dict(s) for s in sources]}
    derived |= {"options": options} if options else {}
    return rest | {"command": command(), DERIVED: derived}


def retrained(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of weights that changed since they were saved: without origin and result."""
    lost = (*RUN_FIELDS, DERIVED)
    rest = {key: value for key, value in config.items() if key not in lost}
    return rest | {"command": "", "metric": None}


def adapter_source(config: Mapping[str, Any]) -> dict[str, Any]:
    """A source that is an adapter: name, digest of its config, and the command that made it.

    The config holds the digest of the weights. An adapter that was never saved has no digest.
    """
    values = {"name": name_of(config), "sha256": config.get("sha256")}
    return values | {"command": config.get("command", "")}


def file_source(path: str) -> dict[str, Any]:
    """A source that is a file: its name and the digest of its bytes, or None without a file."""
    exists = storage.exists(path)
    sha256 = digest(storage.read_bytes(path, MAX_FILE_BYTES)) if exists else None
    return {"name": os.path.basename(path), "sha256": sha256, "command": ""}


def origin_lines(config: Mapping[str, Any]) -> list[str]:
    """The command that made an adapter and, after number signs, what it was made from."""
    derived = config.get(DERIVED)
    if not derived:
        return [config["command"]] if config.get("command") else []
    start, _, preposition = OPERATIONS[derived["operation"]].rpartition(" ")
    options = ", ".join(f"{name}={value}" for name, value in derived.get("options", {}).items())
    title = f"{start} ({options}) {preposition}" if options else f"{start} {preposition}"
    lines = [config["command"], f"# {title}"]
    for source in derived["sources"]:
        parts = [source["name"], f"sha256 {source['sha256']}", source["command"]]
        lines.append(f"# {', '.join(part for part in parts if part)}")
    return lines
