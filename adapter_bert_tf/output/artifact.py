"""A folder that is replaced as a whole: an adapter directory, a SavedModel."""

import abc
import contextlib
import os
import pathlib
from collections.abc import Collection, Iterator
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.atomic import replace_folder, require_creatable


class Artifact(abc.ABC):
    """A folder of one format, in which nothing else may be.

    Args:
      path: local or remote; it need not exist.

    Attributes:
      title: of the format, with its article.
      last: name of the file without which the folder counts as empty.
    """

    title: str
    last: str

    def __init__(self, path: str) -> None:
        self.path = path

    @abc.abstractmethod
    def own_files(self, names: Collection[str]) -> set[str] | None:
        """Those of the names, paths below the folder, that belong to such an artifact.

        None if no file shows that this package wrote it: names alone are anybody's.
        """

    def file(self, name: str) -> str:
        """The path of a file in the folder."""
        return os.path.join(self.path, name)

    def exists(self) -> bool:
        """Whether there is one, damaged or not."""
        return storage.exists(self.file(self.last))

    def run(self) -> str | None:
        """The digest of the run that wrote it; None if it does not say."""
        return None

    def is_whole(self) -> bool:
        """Whether it can be read."""
        return self.exists()

    def state(self) -> Any:
        """What distinguishes it from another one, as a record keeps it."""
        return None

    def require_replaceable(self) -> None:
        """Checks that nothing is at the path but such a folder, written by this package.

        Raises:
          InputError: for anything foreign, which stays.
        """
        require_creatable(self.path)
        if not storage.exists(self.path):
            return
        if not storage.isdir(self.path):
            raise InputError(f"{self.path!r} is a file and will not be replaced. {ELSEWHERE}")
        files, folders = walk(self.path)
        own = self.own_files(files)
        if own is None and (files or folders):
            raise InputError(
                f"{self.path!r} is not {self.title} that this package wrote, and will not be "
                f"replaced: it holds {sorted([*files, *folders])[:5]}. {ELSEWHERE}"
            )
        own = own or set()
        known = {parent.as_posix() for name in own for parent in pathlib.PurePath(name).parents}
        foreign = sorted(({*files} - own) | ({*folders} - known - own))
        if foreign:
            raise InputError(
                f"{self.path!r} holds {', '.join(map(repr, foreign[:5]))} in addition to "
                f"{self.title}, and will not be replaced. Move that away, or choose another folder."
            )

    @contextlib.contextmanager
    def replace(self) -> Iterator[str]:
        """Yields a temporary folder that takes the place of this one when all went well.

        Raises:
          InputError: as `require_replaceable`, before and after the folder is written.
        """
        with replace_folder(self.path, self.last, lambda _: self.require_replaceable()) as folder:
            yield folder


ELSEWHERE = "Choose another folder, or remove it first."


def walk(folder: str) -> tuple[list[str], list[str]]:
    """Paths, relative to a folder, of the files and of the folders below it; links are files."""
    found = [
        (os.path.relpath(os.path.join(above, name), folder), is_folder)
        for above, folders, files in storage.walk(folder)
        for names, is_folder in ((folders, True), (files, False))
        for name in names
    ]
    if storage.is_remote(folder):  # There a folder is what its files are named by.
        return [name for name, is_folder in found if not is_folder], []
    links = {name for name, _ in found if os.path.islink(os.path.join(folder, name))}
    files = [name for name, is_folder in found if not is_folder or name in links]
    return files, [name for name, is_folder in found if is_folder and name not in links]
