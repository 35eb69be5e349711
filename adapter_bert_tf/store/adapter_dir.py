"""The adapter directory as a folder: what may be replaced, and which run wrote it."""

import os
import struct
from collections.abc import Collection, Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Occupied
from adapter_bert_tf.output import atomic
from adapter_bert_tf.output.artifact import Artifact
from adapter_bert_tf.sanitize import parse_json, preview
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store.card import is_card
from adapter_bert_tf.store.file_names import CARD, CONFIG, INSIDE, MEMBERS, WEIGHTS
from adapter_bert_tf.store.multitask import task_title
from adapter_bert_tf.store.weights import FORMAT, MAX_HEADER_BYTES

LARGEST_CARD = 1 << 20


class AdapterDir(Artifact):
    """An adapter directory; any of its three files, perhaps damaged, identifies it as ours."""

    title, last = "an adapter directory", CONFIG

    def own_files(self, names: Collection[str]) -> set[str] | None:
        """The names that belong to the adapter, and to the adapters in it."""
        config = self.config()
        card = _read(self.file(CARD), LARGEST_CARD).decode("utf-8", "replace")
        if config is None and not self._has_our_weights() and not is_card(card):
            return None
        own = {CONFIG, WEIGHTS, CARD, *INSIDE.keys() - {*names}}  # Links and files are not folders.
        paths = [name.split("/", 2) for name in names]
        folders = {tuple(path[:2]) for path in paths if len(path) == 3 and path[0] in INSIDE}
        for parent, folder in folders:
            if _lists_folder(config, parent, folder):
                inner = [path[2] for path in paths if path[:2] == [parent, folder] and path[2:]]
                inner_files = AdapterDir(self.file(f"{parent}/{folder}")).own_files(inner)
                own |= {f"{parent}/{folder}/{name}" for name in inner_files or ()}
        return own

    def require_replaceable(self) -> None:
        """As `Artifact.require_replaceable`; also not inside another adapter directory."""
        require_outside_adapters(self.path)
        super().require_replaceable()

    def run(self) -> str | None:
        """The digest of the run that wrote the adapter, if it is recorded."""
        run = (self.config() or {}).get("run")
        return run if isinstance(run, str) else None

    def config(self) -> dict[str, Any] | None:
        """The unchecked config; None without one, and for another library's."""
        try:
            config = parse_json(_read(self.file(CONFIG), schema.LARGEST_CONFIG), distinct=True)
        except ValueError:
            return None
        required = checks.FIELDS.keys()
        return config if isinstance(config, dict) and required <= config.keys() else None

    def _has_our_weights(self) -> bool:
        beginning = _read(self.file(WEIGHTS), 8)
        if len(beginning) < 8:
            return False
        length = min(struct.unpack("<Q", beginning)[0], MAX_HEADER_BYTES)
        try:
            header = parse_json(_read(self.file(WEIGHTS), 8 + length)[8:])
        except ValueError:
            return False
        return isinstance(header, dict) and header.get("__metadata__") == {"format": FORMAT}


def _lists_folder(config: Mapping[str, Any] | None, parent: str, folder: str) -> bool:
    """Whether a config lists the adapter in a folder; a damaged config may list any."""
    if config is None:
        return True
    entries = config.get(parent)
    entries = entries if isinstance(entries, list) else []
    if parent == MEMBERS:
        return folder in {str(digest)[:16] for digest in entries}
    return folder in {task_title(t) for t in entries if isinstance(t, dict) and "task" in t}


def require_outside_adapters(folder: str) -> None:
    """Raises `InputError` for a folder inside an adapter directory.

    A file among the members of a fusion, or the tasks of an adapter, would make it unreadable, and
    would be removed with it.
    """
    path = storage.real(folder)
    while path != os.path.dirname(path):
        above, name = os.path.split(path)
        if name in INSIDE and storage.exists(os.path.join(above, CONFIG)):
            part, adapter = INSIDE[name]
            raise Occupied(
                f"{folder!r} is among the {part}s of the {adapter} in {above!r}, where nothing "
                "else can be. Choose another folder."
            )
        path = above


def require_free(folder: str) -> None:
    """Raises `InputError` unless a folder is empty or new, outside adapter directories."""
    require_outside_adapters(folder)
    atomic.require_free(folder)


def require_same_task(folder: str, config: Mapping[str, Any]) -> None:
    """Raises `InputError` if a folder has an adapter with another name or other labels."""
    existing = AdapterDir(folder).config()
    if existing is None:
        return
    old_name, new_name = contents.name_of(existing), contents.name_of(config)
    if old_name != new_name or any(existing[key] != config[key] for key in ("labels", "head")):
        raise Occupied(
            f"{folder!r} holds the adapter {preview(old_name)} with {_outputs(existing)}. "
            f"Received: {preview(new_name)} with {_outputs(config)}. Choose another folder, or "
            "pass overwrite=True.",
            "overwrite=True",
        )


def _outputs(config: Mapping[str, Any]) -> str:
    labels = config["labels"]
    return f"the labels {preview(labels)}" if labels else "a score"


def _read(path: str, limit: int) -> bytes:
    """The first bytes of a file; none without a regular file."""
    if storage.is_link(path) or (not storage.is_remote(path) and not os.path.isfile(path)):
        return b""
    try:
        content: bytes = storage.read_bytes(path, limit)
    except FileNotFoundError:
        return b""
    return content
