"""The adapter directory as a folder: what may be replaced, and which run wrote it."""

import os
import struct
from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
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
    """An adapter directory. One of its three files, which may be damaged, shows that it is ours.

    A copy to a bucket that was cut short may hold any of them, and damage may be in any of them.
    """

    title, last = "an adapter directory", CONFIG

    def own_files(self, names: Collection[str]) -> set[str] | None:
        """The names that belong to the adapter, and to the adapters in it."""
        config = self.config()
        if config is None and not self._has_our_weights() and not self._has_our_card():
            return None
        own = {CONFIG, WEIGHTS, CARD, *INSIDE.keys() - {*names}}  # Links and files are no folders.
        for inside in INSIDE:
            inner = [name.split("/", 2)[1:] for name in names if name.startswith(f"{inside}/")]
            for folder in {parts[0] for parts in inner if len(parts) == 2}:
                if not _belongs(config, inside, folder):
                    continue
                theirs = AdapterDir(self.file(f"{inside}/{folder}"))
                files = theirs.own_files([parts[1] for parts in inner if parts[0] == folder])
                own |= {f"{inside}/{folder}/{name}" for name in files or ()}
        return own

    def require_replaceable(self) -> None:
        """As `Artifact.require_replaceable`; also not inside another adapter directory."""
        require_outside_adapters(self.path)
        super().require_replaceable()

    def run(self) -> str | None:
        """The digest of the run that wrote the adapter; None if it does not say."""
        run = (self.config() or {}).get("run")
        return run if isinstance(run, str) else None

    def config(self) -> dict[str, Any] | None:
        """A config of ours, unchecked; None if there is none, or another library's."""
        content = _read(self.file(CONFIG), schema.LARGEST_CONFIG)
        try:
            config = parse_json(content, distinct=True)
        except ValueError:
            return None
        ours = isinstance(config, dict) and checks.FIELDS.keys() <= config.keys()
        return config if ours else None

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

    def _has_our_card(self) -> bool:
        return is_card(_read(self.file(CARD), LARGEST_CARD).decode("utf-8", "replace"))


def _belongs(config: Mapping[str, Any] | None, inside: str, folder: str) -> bool:
    """Whether a config lists the adapter in a folder; a damaged one may list any."""
    if config is None:
        return True
    listed = config.get(inside)
    listed = listed if isinstance(listed, list) else []
    if inside == MEMBERS:
        return folder in {str(digest)[:16] for digest in listed}
    return folder in {task_title(t) for t in listed if isinstance(t, dict) and "task" in t}


def require_outside_adapters(folder: str) -> None:
    """Checks that a folder is not inside an adapter directory. Raises `InputError`.

    A file among the members of a fusion would make the fusion unreadable, and would be removed
    with it; so would one among the tasks of several.
    """
    path = storage.real(folder)
    while path != os.path.dirname(path):
        above, name = os.path.split(path)
        if name in INSIDE and storage.exists(os.path.join(above, CONFIG)):
            part, whole = INSIDE[name]
            raise InputError(
                f"{folder!r} is among the {part}s of the {whole} in {above!r}, where nothing else "
                "can be. Choose another folder."
            )
        path = above


def require_free(folder: str) -> None:
    """Checks that nothing is at a path, outside adapter directories. Raises `InputError`."""
    require_outside_adapters(folder)
    atomic.require_free(folder)


def require_same_task(folder: str, config: Mapping[str, Any]) -> None:
    """Checks that an adapter in a folder has the same name and labels. Raises `InputError`."""
    theirs = AdapterDir(folder).config()
    if theirs is None:
        return
    name, ours = contents.name_of(theirs), contents.name_of(config)
    if name != ours or any(theirs[key] != config[key] for key in ("labels", "head")):
        raise InputError(
            f"{folder!r} holds the adapter {preview(name)} with {_outputs(theirs)}, and "
            f"{preview(ours)} with {_outputs(config)} is to go there. Choose another folder, or "
            "pass overwrite=True.",
            "overwrite=True",
        )


def _outputs(config: Mapping[str, Any]) -> str:
    labels = config["labels"]
    return f"the labels {preview(labels)}" if labels else "a score"


def _read(path: str, limit: int) -> bytes:
    """The first bytes of a file; none if there is no regular file."""
    if storage.is_link(path) or (not storage.is_remote(path) and not os.path.isfile(path)):
        return b""
    try:
        content: bytes = storage.read_bytes(path, limit)
    except tf.errors.NotFoundError:
        return b""
    return content
