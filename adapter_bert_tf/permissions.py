"""Files and folders that this user may not read or write, said in one line."""

import contextlib
import os
import re
from collections.abc import Iterator

from adapter_bert_tf.errors import InputError


def denied(error: BaseException) -> str | None:
    """What a user reads of a place that is closed to him; None of any other error.

    Args:
      error: of Python or, by its name, of TensorFlow, which may not be loaded.
    """
    if isinstance(error, PermissionError):
        return _sentence(os.fsdecode(error.filename)) if _is_path(error.filename) else None
    said = getattr(error, "message", "") if type(error).__name__ == "PermissionDeniedError" else ""
    found = re.match(r"(?:\{\{.*?\}\} )?(.+); Permission denied", str(said))
    return _sentence(found[1]) if found else None


@contextlib.contextmanager
def denied_as_input_error() -> Iterator[None]:
    """What is closed to this user is an `InputError` that names it."""
    try:
        yield
    except Exception as error:
        if (said := denied(error)) is None:
            raise
        raise InputError(said) from error


def require_open(folder: str | os.PathLike[str]) -> None:
    """A local folder must not be closed to this user: what is in it would seem not to be there.

    Raises:
      InputError: for one that is closed, or below one that is.
    """
    path = os.fspath(folder)
    if "://" not in path and is_closed(place := _there(path)):
        raise InputError(_sentence(place))


def is_closed(place: str) -> bool:
    """Whether this user may not read a local file, or not list and enter a folder."""
    return "read" in _lacking(place)


def require_writable(folder: str) -> None:
    """A local folder must be one that this user may write into. Raises `InputError` else."""
    if "written" in _lacking(folder):
        raise InputError(_sentence(folder))


def _is_path(name: object) -> bool:
    return isinstance(name, str | bytes) and bool(name)


def _sentence(path: str) -> str:
    """What may not be done with a path; where nothing is, with the folder above it."""
    place = _there(path)
    what = f"may not be {' or '.join(_lacking(place)) or 'used so'} by this user"
    kind = "the folder " if os.path.isdir(place) else ""
    return f"Permission denied: {kind}{place!r} {what}. Change that by chmod, or name another."


def _there(path: str) -> str:
    """A path, or the nearest above it at which something is."""
    while path not in ("", "/") and not os.path.lexists(path):
        path = os.path.dirname(path.rstrip("/"))
    return path or "."


def _lacking(place: str) -> list[str]:
    """What this user may not do there: a folder is read by who may list and enter it."""
    read = os.R_OK | os.X_OK if os.path.isdir(place) else os.R_OK
    asked = {"read": read, "written": os.W_OK}
    return [name for name, mode in asked.items() if not os.access(place, mode)]
