"""A folder that is replaced as a whole: an adapter directory, a SavedModel."""

import abc
import contextlib
import os
import pathlib
from collections.abc import Collection, Iterator
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Occupied
from adapter_bert_tf.output.atomic import replace_folder, require_creatable


class Artifact(abc.ABC):
    """A folder of one format, which holds nothing else.

    Args:
      path: local or remote; it need not exist.

    Attributes:
      title: name of the format, with its article.
      last: name of the file without which the folder counts as empty.
    """

    title: str
    last: str

    def __init__(self, path: str) -> None:
        self.path = path

    @abc.abstractmethod
    def own_files(self, names: Collection[str]) -> set[str] | None:
        """Returns those of the names, paths below the folder, that belong to such an artifact.

        None if no file shows that this package wrote it: others may use the same names.
        """

    def file(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return os.path.join(self.path, name)

    def exists(self) -> bool:
        """Whether there is an artifact, damaged or not."""
        return storage.exists(self.file(self.last))

    def run(self) -> str | None:
        """Returns the digest of the run that wrote it; None if it does not record one."""
        return None

    def is_whole(self) -> bool:
        """Whether it can be read."""
        return self.exists()

    def state(self) -> Any:
        """Returns what distinguishes it from another one, as a record keeps it."""
        return None

    def require_replaceable(self) -> None:
        """Raises `InputError` if there is anything at the path that this package did not write."""
        require_creatable(self.path)
        if not storage.exists(self.path):
            return
        if not storage.isdir(self.path):
            raise Occupied(f"{self.path!r} is a file and will not be replaced. {ELSEWHERE}")
        files, folders = walk(self.path)
        own = self.own_files(files)
        if own is None and (files or folders):
            raise Occupied(
                f"{self.path!r} is not {self.title} that this package wrote, and will not be "
                f"replaced: it holds {sorted([*files, *folders])[:5]}. {ELSEWHERE}"
            )
        own = own or set()
        parents = {parent.as_posix() for name in own for parent in pathlib.PurePath(name).parents}
        foreign = sorted(({*files} - own) | ({*folders} - parents - own))
        if foreign:
            raise Occupied(
                f"{self.path!r} holds {', '.join(map(repr, foreign[:5]))} in addition to "
                f"{self.title}, and will not be replaced. Move that away, or choose another folder."
            )

    @contextlib.contextmanager
    def replace(self) -> Iterator[str]:
        """Yields a temporary folder that replaces this one if no error occurs.

        Raises `InputError` as `require_replaceable`, before and after the folder is written.
        """
        with replace_folder(self.path, self.last, lambda _: self.require_replaceable()) as folder:
            yield folder


ELSEWHERE = "Choose another folder, or remove it first."


def walk(folder: str) -> tuple[list[str], list[str]]:
    """Returns the relative paths of all files and of all folders below; links count as files."""
    files, folders = [], []
    for above, inner, names in storage.walk(folder):
        paths = {name: os.path.join(above, name) for name in (*inner, *names)}
        relative = {name: os.path.relpath(path, folder) for name, path in paths.items()}
        links = [name for name in inner if storage.is_link(paths[name])]
        files += [relative[name] for name in (*names, *links)]
        folders += [relative[name] for name in inner if name not in links]
    # A store has no folders apart from the names of files.
    return files, [] if storage.is_remote(folder) else folders
