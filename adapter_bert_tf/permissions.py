"""Files and folders that this user may not read or write: one sentence names the place."""

import contextlib
import os
import re
from collections.abc import Iterator

from adapter_bert_tf.errors import Unavailable


def denied(error: BaseException) -> str | None:
    """Returns the sentence for a denied permission, None for any other error.

    TensorFlow's error is known by its name, because TensorFlow may not be imported.
    """
    if isinstance(error, PermissionError):
        return _sentence(os.fsdecode(error.filename)) if error.filename else None
    is_tf = type(error).__name__ == "PermissionDeniedError"
    message = getattr(error, "message", "") if is_tf else ""
    path = re.match(r"(?:\{\{.*?\}\} )?(.+); Permission denied", str(message))
    return _sentence(path[1]) if path else None


@contextlib.contextmanager
def denied_as_input_error() -> Iterator[None]:
    """Turns a denied permission into an `InputError` that names the place."""
    try:
        yield
    except Exception as error:
        if (sentence := denied(error)) is None:
            raise
        raise Unavailable(sentence) from error


def require_open(folder: str | os.PathLike[str]) -> None:
    """Raises `InputError` unless this user may read a local folder: it would seem to be empty."""
    path = os.fspath(folder)
    if "://" not in path and is_closed(_nearest(path)):
        raise Unavailable(_sentence(path))


def is_closed(path: str) -> bool:
    """Whether this user may not read a local file, or not list and enter a folder."""
    return "read" in _denied_uses(path)


def require_writable(folder: str) -> None:
    """Raises `InputError` unless this user may write into a local folder."""
    if "written" in _denied_uses(folder):
        raise Unavailable(_sentence(folder))


def _sentence(path: str) -> str:
    place = _nearest(path)
    uses = " or ".join(_denied_uses(place)) or "used so"
    kind = "the folder " if os.path.isdir(place) else ""
    advice = "Change that by chmod, or name another."
    return f"Permission denied: {kind}{place!r} may not be {uses} by this user. {advice}"


def _nearest(path: str) -> str:
    """The path, or the nearest folder above it that exists."""
    while path not in ("", "/") and not os.path.lexists(path):
        path = os.path.dirname(path.rstrip("/"))
    return path or "."


def _denied_uses(path: str) -> list[str]:
    # Reading a folder means listing and entering it.
    modes = {"read": os.R_OK | (os.path.isdir(path) and os.X_OK), "written": os.W_OK}
    return [use for use, mode in modes.items() if not os.access(path, mode)]
