"""An input as data, and the property that holds of it: answered, or refused in one good message."""

import contextlib
import dataclasses
import io
import logging
import os
import pathlib
import resource
import time
from collections.abc import Callable, Mapping
from typing import Any

from absl import logging as absl_logging
from hypothesis.strategies import SearchStrategy

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import printable

LONGEST_MESSAGE = 2500
MOST_SECONDS = 60
MOST_BYTES = 2 << 30
GIVEN, OUTSIDE = "given", "outside"


@dataclasses.dataclass(frozen=True)
class Link:
    """A symbolic link in a tree."""

    target: str


@dataclasses.dataclass(frozen=True)
class Case:
    """One input.

    Args:
      files: dict from a path below the folder given to bytes, None for a folder, or a `Link`.
      settings: what else the operation is told.
    """

    files: Mapping[str, bytes | Link | None]
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of input: a row of `kinds.KINDS`.

    Args:
      cases: strategy of `Case`.
      operation: function of the folder and the settings; returns, or raises `InputError`.
      named: what messages name besides the files of the case: flags and arguments.
      examples: how many the default suite tries.
    """

    cases: SearchStrategy[Case]
    operation: Callable[[pathlib.Path, Mapping[str, Any]], None]
    named: tuple[str, ...] = ()
    examples: int = 20


def outcome(kind: Kind, case: Case, folder: pathlib.Path) -> str:
    """`accepted` or `refused`; an AssertionError, or what was raised, if the property is broken.

    Args:
      kind: of the case.
      case: to try.
      folder: an empty one; the files go to `given`, and what is in `outside` must stay.
    """
    write(case, folder)
    before, started, most = contents(folder / OUTSIDE), time.monotonic(), _memory()
    said, result = Said(), "accepted"
    with said.heard():
        try:
            kind.operation(folder / GIVEN, case.settings)
        except InputError as error:
            result = "refused"
            check_message(str(error), [*_names(case, folder), *kind.named, *error.arguments])
    check_said(said)
    assert contents(folder / OUTSIDE) == before, "something outside was changed"
    assert time.monotonic() - started < MOST_SECONDS, "it took too long"
    assert _memory() - most < MOST_BYTES, "it took too much memory"
    return result


def check_message(message: str, names: list[str]) -> None:
    """A message names what is wrong, is short, and prints as it is."""
    assert message.strip(), "it says nothing"
    assert len(message) <= LONGEST_MESSAGE, f"a message of {len(message)} characters: {message}"
    assert printable(message, "\n\t") == message, f"not printable: {message!r}"
    assert "Traceback" not in message, message
    assert any(name in message for name in names), f"it names neither file nor flag: {message}"


def check_said(said: "Said") -> None:
    """Warnings and lines forge no other lines, and are short."""
    for line in [*said.warnings, said.printed.getvalue()]:
        assert printable(line, "\n\t") == line, f"not printable: {line!r}"
    for line in said.warnings:
        assert len(line) <= LONGEST_MESSAGE, f"a warning of {len(line)} characters: {line[:500]}"


class Said(logging.Handler):
    """What is logged and printed meanwhile."""

    def __init__(self):
        super().__init__()
        self.warnings, self.printed = [], io.StringIO()

    def emit(self, record):
        self.warnings.append(record.getMessage())

    @contextlib.contextmanager
    def heard(self):
        logger = absl_logging.get_absl_logger()
        before, logger.handlers = logger.handlers, [self]
        propagates, logger.propagate = logger.propagate, False
        try:
            with contextlib.redirect_stdout(self.printed):
                yield
        finally:
            logger.handlers, logger.propagate = before, propagates


def write(case: Case, folder: pathlib.Path) -> None:
    """Writes the files of a case, and beside them what must stay."""
    (folder / GIVEN).mkdir()
    (folder / OUTSIDE / "below").mkdir(parents=True)
    (folder / OUTSIDE / "below" / "mine").write_text("kept")
    for name, content in sorted(case.files.items()):
        path = folder / GIVEN / name
        with contextlib.suppress(OSError):  # Below a file there is no folder.
            path.parent.mkdir(parents=True, exist_ok=True)
            _put(path, content)


def _put(path, content):
    if content is None:
        path.mkdir(exist_ok=True)
    elif isinstance(content, Link):
        path.symlink_to(content.target)
    elif not path.is_symlink():
        path.write_bytes(content)


def contents(folder: pathlib.Path) -> dict[str, Any]:
    """Dict from path below a folder to its bytes, its link's target, or None."""
    found: dict[str, Any] = {}
    for place, folders, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in (*folders, *names)):
            if os.path.islink(path):
                content: Any = os.readlink(path)
            else:
                content = pathlib.Path(path).read_bytes() if os.path.isfile(path) else None
            found[os.path.relpath(path, folder)] = content
    return found


def _names(case, folder):
    """What may name the input in a message; a folder's own name counts too."""
    parts = {part for name in case.files for part in name.split("/")}
    return [printable(part) for part in sorted(parts) if part] + [str(folder / GIVEN)]


def _memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
