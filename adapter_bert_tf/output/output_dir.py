"""A folder that a command writes: its lock, its own files, foreign files."""

import contextlib
import dataclasses
import fnmatch
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.atomic import TEMPORARY
from adapter_bert_tf.output.lock import FILE, locked
from adapter_bert_tf.output.records import read_record

Pattern: TypeAlias = str | re.Pattern[str]  # As of `fnmatch`, or of the whole name.
# Every command writes these: the lock, and a file that shows that the folder can be written.
ALWAYS = (FILE, ".writable", ".writable.*.tmp")
# What a killed process leaves: a file before its renaming; a lock of an earlier version.
UNFINISHED = re.compile(r"(.*)\.[0-9a-f]{8}\.tmp|(\.lock)\.[0-9a-f]{32}")
UNFINISHED_FOLDER = re.compile(rf"(.*){re.escape(TEMPORARY)}[0-9a-f]{{12}}")
KEY = "flags"  # In a record of ours.


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a command writes into a folder; all else in it is foreign, and stays.

    Args:
      files: patterns of files that are replaced. They are removed in this order.
      records: names of JSON files with an entry `flags`, which say who wrote the rest: the first
        files to be written, the last to be removed.
      added: patterns of files that are added or checked by their writer, and removed with the rest.
      is_foreign: whether the file at a path, with such a name, is not ours all the same.
      incomplete: pattern of what exists only while something is written.
      completed_by: a pattern and a template of `re.Match.expand`: a file of this pattern counts
        only next to the file that the template names.
      replaced: dict from the name of a folder that is replaced as a whole to a function that
        raises `InputError` if it holds anything foreign; None if it is never cleared.
      folders: dict from the name of a folder to its contents.
    """

    files: tuple[Pattern, ...] = ()
    records: tuple[str, ...] = ()
    added: tuple[Pattern, ...] = ()
    is_foreign: Callable[[str], bool] = lambda path: False
    incomplete: Pattern = ""
    completed_by: tuple[Pattern, str] = ("", "")
    replaced: Mapping[str, Callable[[str], object] | None] = dataclasses.field(default_factory=dict)
    folders: Mapping[str, "Contents"] = dataclasses.field(default_factory=dict)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Of all files."""
        return (*self.files, *self.records, *self.added)

    def is_unfinished(self, name: str, is_folder: bool, names: Collection[str]) -> bool:
        """Whether a killed process left what has this name, in a folder with these names."""
        if found := UNFINISHED.fullmatch(name):
            return not is_folder and matches(found[1] or found[2], (*self.patterns, *ALWAYS))
        if found := UNFINISHED_FOLDER.fullmatch(name):
            return is_folder and found[1] in self.replaced
        pattern, template = self.completed_by
        if found := re.fullmatch(pattern, name):
            return found.expand(template) not in names
        return matches(name, [self.incomplete])


def matches(name: str, patterns: Collection[Pattern]) -> bool:
    """Whether one of the patterns is of a name."""
    return any(
        pattern.fullmatch(name) is not None
        if isinstance(pattern, re.Pattern)
        else fnmatch.fnmatchcase(name, pattern)
        for pattern in patterns
    )


class OutputDir:
    """A folder that a command writes, and in which the user may keep files too.

    Args:
      path: local or remote; it need not exist.
      contents: what the command writes there.
    """

    def __init__(self, path: str, contents: Contents) -> None:
        self.path, self.contents = path, contents
        self._inner = [OutputDir(self.file(n), inner) for n, inner in contents.folders.items()]

    def file(self, name: str) -> str:
        """The path of a file in the folder."""
        return os.path.join(self.path, name)

    @contextlib.contextmanager
    def lock(self, wait: bool = False) -> Iterator[None]:
        """Holds the folder: no other process writes it, and what killed ones left is removed.

        Args:
          wait: whether to wait for another process that holds it.

        Raises:
          InputError: if another process holds it, or something foreign is in the way.
        """
        self.require_clear_names()
        with locked(self.path, wait):
            self._remove_unfinished()
            yield

    def require_clear_names(self) -> None:
        """Checks that no folder has a file's name, and no file a folder's. Raises `InputError`."""
        for inner in self._inner:
            if storage.is_link(inner.path) and not storage.exists(inner.path):
                raise InputError(_in_the_way(inner.path, "a link that leads nowhere", "a folder"))
            if storage.exists(inner.path) and not storage.isdir(inner.path):
                raise InputError(_in_the_way(inner.path, "a file", "a folder"))
            inner.require_clear_names()
        for path in self._paths((*self.contents.patterns, FILE)):
            if storage.isdir(path):
                raise InputError(_in_the_way(path, "a folder", "a file"))

    def require_own_files(self) -> None:
        """Checks that files that would be replaced are ours: a record says so.

        Raises:
          InputError: for a file with the name of one of ours, in a folder without a record.
        """
        patterns = (*self.contents.files, *self.contents.records)
        if not self._is_recorded() and (foreign := self._paths(patterns)):
            raise InputError(
                f"{min(foreign)} exists, and no record next to it says that a run wrote it. A run "
                "would replace it. Move it away, or choose another --output_dir."
            )

    def _is_recorded(self) -> bool:
        """Whether there is a record; a damaged one counts, as a power cut may leave it."""
        records = [read_record(path) for path in self._paths(self.contents.records)]
        return any(record is None or KEY in record for record in records) or any(
            inner._paths(inner.contents.records) for inner in self._inner
        )

    def clear(self, more: Collection[Pattern] = ()) -> None:
        """Removes what an earlier run left; foreign files stay.

        Inner folders go first and records last: killed at any point, it can be repeated, and the
        folder never looks like that of an interrupted run, which has an inner record only.

        Args:
          more: patterns of files that are also removed.
        """
        is_recorded = bool(self._paths(self.contents.records))
        for inner in self._inner:
            inner._remove(inner.contents.files)
            inner._remove(inner.contents.records if is_recorded else ())
        for name, check in self.contents.replaced.items():
            if check:
                _remove_folder(self.file(name), check)
        self._remove((*self.contents.files, *self.contents.added, *more))
        self._remove(self.contents.records)
        for inner in self._inner:
            inner._remove(inner.contents.records)

    def _remove(self, patterns: Collection[Pattern]) -> None:
        """Removes files in the order of their patterns; folders stay."""
        for path in self._paths(patterns):
            if not storage.isdir(path) and not self.contents.is_foreign(path):
                storage.remove(path)

    def _remove_unfinished(self) -> None:
        """Removes what a killed process had begun to write."""
        names = self._names()
        for name in names:
            path = self.file(name)
            is_folder = storage.isdir(path)
            if self.contents.is_unfinished(name, is_folder, names):
                (storage.rmtree if is_folder else storage.remove)(path)
        for inner in self._inner:
            inner._remove_unfinished()

    def _paths(self, patterns: Collection[Pattern]) -> list[str]:
        """Paths of what has such names, in the order of the patterns."""
        names = self._names() if patterns else []
        found = [name for pattern in patterns for name in names if matches(name, [pattern])]
        return [self.file(name) for name in dict.fromkeys(found)]

    def _names(self) -> list[str]:
        names = storage.listdir(self.path) if storage.isdir(self.path) else []
        return sorted(name.rstrip("/") for name in names)


def _remove_folder(path: str, check: Callable[[str], object]) -> None:
    """Removes a folder that is replaced as a whole, unless it holds anything foreign."""
    if not storage.isdir(path):
        return
    try:
        check(path)
    except InputError as error:
        logging.warning("What is in %s stays. %s", path, error)
        return
    storage.rmtree(path)


def _in_the_way(path: str, found: str, wanted: str) -> str:
    return (
        f"{path} is {found}, and a run writes {wanted} there. Move it away, or choose another "
        "--output_dir."
    )
