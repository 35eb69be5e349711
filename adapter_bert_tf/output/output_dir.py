"""An output folder: its lock, its own files, foreign files."""

import contextlib
import dataclasses
import fnmatch
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError, Occupied
from adapter_bert_tf.output.atomic import TEMPORARY
from adapter_bert_tf.output.lock import FILE, locked
from adapter_bert_tf.output.records import read_record

Pattern: TypeAlias = str | re.Pattern[str]  # For `fnmatch`, or for `fullmatch`.
# Every command writes these: the lock, and a probe of whether the folder is writable.
ALWAYS = (FILE, ".writable", ".writable.*.tmp")
# Left by a killed process: a file before its renaming; a lock of an earlier version.
UNFINISHED = re.compile(r"(.*)\.[0-9a-f]{8}\.tmp|(\.lock)\.[0-9a-f]{32}")
UNFINISHED_FOLDER = re.compile(rf"(.*){re.escape(TEMPORARY)}[0-9a-f]{{12}}")
KEY = "flags"  # In every record of this package.


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a command writes into a folder; everything else in it is foreign, and stays.

    Args:
      files: patterns of files that are replaced; removed in this order.
      records: names of JSON files with a key `flags`, which show that this package wrote the rest:
        the first files to be written, the last to be removed.
      added: patterns of files that are added or checked by their writer, and removed with the rest.
      is_foreign: whether the file at a path with such a name is foreign nevertheless.
      incomplete: pattern of names that exist only during writing.
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
        """Patterns of all files."""
        return (*self.files, *self.records, *self.added)

    def is_unfinished(self, name: str, is_folder: bool, names: Collection[str]) -> bool:
        """Whether a killed process left this name, in a folder with these names."""
        if match := UNFINISHED.fullmatch(name):
            return not is_folder and matches(match[1] or match[2], (*self.patterns, *ALWAYS))
        if match := UNFINISHED_FOLDER.fullmatch(name):
            return is_folder and match[1] in self.replaced
        pattern, template = self.completed_by
        if match := re.fullmatch(pattern, name):
            return match.expand(template) not in names
        return matches(name, [self.incomplete])


def matches(name: str, patterns: Collection[Pattern]) -> bool:
    """Whether a name matches one of the patterns."""
    return any(
        pattern.fullmatch(name) is not None
        if isinstance(pattern, re.Pattern)
        else fnmatch.fnmatchcase(name, pattern)
        for pattern in patterns
    )


class OutputDir:
    """A local or remote folder that a command writes; the user may keep other files there."""

    def __init__(self, path: str, contents: Contents) -> None:
        self.path, self.contents = path, contents
        self._inner = [OutputDir(self.file(n), inner) for n, inner in contents.folders.items()]

    def file(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return os.path.join(self.path, name)

    @contextlib.contextmanager
    def lock(self, wait: bool = False) -> Iterator[None]:
        """Locks the folder and removes files of killed processes.

        Raises `InputError` if another process holds it, unless `wait`, or if something foreign has
        a name of ours.
        """
        self.require_clear_names()
        with locked(self.path, wait):
            self._remove_unfinished()
            yield

    def require_clear_names(self) -> None:
        """Raises `InputError` if a folder has a file's name, or a file a folder's."""
        for inner in self._inner:
            if storage.is_link(inner.path) and not storage.exists(inner.path):
                raise _name_taken(inner.path, "a broken link", "a folder")
            if storage.exists(inner.path) and not storage.isdir(inner.path):
                raise _name_taken(inner.path, "a file", "a folder")
            inner.require_clear_names()
        for path in self._paths((*self.contents.patterns, FILE)):
            if storage.isdir(path):
                raise _name_taken(path, "a folder", "a file")

    def require_own_files(self) -> None:
        """Raises `InputError` for a file with a name of ours, in a folder without a record."""
        patterns = (*self.contents.files, *self.contents.records)
        if not self._is_recorded() and (foreign := self._paths(patterns)):
            raise Occupied(
                f"{min(foreign)} exists, and no record shows that a run wrote it. A run would "
                "replace it: move it away, or choose another --output_dir."
            )

    def _is_recorded(self) -> bool:
        """Whether there is a record; a damaged one counts, because a power cut may leave it."""
        records = [read_record(path) for path in self._paths(self.contents.records)]
        return any(record is None or KEY in record for record in records) or any(
            inner._paths(inner.contents.records) for inner in self._inner
        )

    def clear(self, more: Collection[Pattern] = ()) -> None:
        """Removes the files of an earlier run, and further patterns; foreign files stay.

        Inner folders go first and records last. So it can be repeated when killed at any point, and
        the folder never looks interrupted: an interrupted run has only an inner record.
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
        names = self._names()
        for name in names:
            path = self.file(name)
            is_folder = storage.isdir(path)
            if self.contents.is_unfinished(name, is_folder, names):
                (storage.rmtree if is_folder else storage.remove)(path)
        for inner in self._inner:
            inner._remove_unfinished()

    def _paths(self, patterns: Collection[Pattern]) -> list[str]:
        """Returns the paths that match, in the order of the patterns."""
        names = self._names() if patterns else []
        matching = [name for pattern in patterns for name in names if matches(name, [pattern])]
        return [self.file(name) for name in dict.fromkeys(matching)]

    def _names(self) -> list[str]:
        names = storage.listdir(self.path) if storage.isdir(self.path) else []
        return sorted(name.rstrip("/") for name in names)


def _remove_folder(path: str, check: Callable[[str], object]) -> None:
    if not storage.isdir(path):
        return
    try:
        check(path)
    except InputError as error:
        logging.warning("The content of %s stays. %s", path, error)
        return
    storage.rmtree(path)


def _name_taken(path: str, actual: str, expected: str) -> InputError:
    return Occupied(
        f"{path} is {actual}, and a run writes {expected} there. Move it away, or choose another "
        "--output_dir."
    )
