"""The edge of a command: what nobody foresaw becomes one message and a log."""

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Collection, Sequence

from adapter_bert_tf.config.messages import spell_for_command
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.permissions import denied
from adapter_bert_tf.sanitize import is_utf8, preview, printable

NO_MEMORY = "The memory of this machine is not enough. Use smaller batches, or a shorter length."
NO_ROOM = "There is no room left on the disk. Make some, and give the same command again."


def before_tensorflow() -> None:
    """What a command says to TensorFlow before it is loaded, if the user has not.

    Level 3: TensorFlow 2.20 reports absent GPUs and its own pruning of graphs as errors. Without
    the name of Keras 2 it loads Keras 3 as well, and all that this loads: nearly a second.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")


def program_name(module: str) -> str:
    """What starts this process: `adapter-bert COMMAND`, or `python -m MODULE`."""
    if os.path.basename(sys.argv[0]) == "adapter-bert" and len(sys.argv) > 1:
        return f"adapter-bert {sys.argv[1]}"
    return f"python -m {module}"


def require_utf8(words: Sequence[str]) -> None:
    """What a command is given must be UTF-8: TensorFlow takes no other texts or names of files.

    Args:
      words: of the command line.

    Raises:
      InputError: for one that is no UTF-8.
    """
    for word in words:
        if not is_utf8(word):
            raise InputError(
                f"A command is given UTF-8. Received: {preview(word)}. Write a text so, and "
                "rename a file or folder."
            )


def run_guarded(run: Callable[[], int], flags: Collection[str]) -> int:
    """Runs a command that leaves no folder of a run; returns its exit status.

    Args:
      run: function that returns the status; what goes wrong is one message and 1.
      flags: names of the flags that the command has, which messages then name.
    """
    before_tensorflow()
    try:
        require_utf8(sys.argv)
        return run()
    except InputError as error:
        said = spell_for_command(error, flags)
    except Exception as error:
        said = error_report(error, None)
    print(f"error: {said}", file=sys.stderr)
    return 1


def error_report(error: BaseException, folder: str | None) -> str:
    """One message for an error that is no `InputError`; its traceback goes to a log.

    A place that is closed to the user is named without a log: he can open it, or name another.

    Args:
      error: that ended the command.
      folder: for the log, if it is there: the run's own; else it goes among temporary files.
    """
    if said := denied(error):
        return printable(said)
    return f"{_what(error)} The traceback is {_log(error, folder)}"


def _what(error: BaseException) -> str:
    said = " ".join(str(error).split())[:300] or type(error).__name__
    if isinstance(error, MemoryError):
        return NO_MEMORY
    if isinstance(error, OSError):
        return f"{NO_ROOM} ({said})" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"{said}."
    if _is_of_tensorflow(error, "ResourceExhaustedError"):
        return NO_ROOM if "No space" in said or "space left" in said else NO_MEMORY
    if _is_of_tensorflow(error, "OpError"):
        return f"TensorFlow failed: {said}."
    return f"This should not have happened ({type(error).__name__}: {said})."


def _is_of_tensorflow(error: BaseException, name: str) -> bool:
    """Whether it is such an error of TensorFlow's, if that was loaded at all."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(error, getattr(tf.errors, name))


def _log(error: BaseException, folder: str | None) -> str:
    """Writes the traceback; returns where it is, or itself where nothing can be written."""
    text = "".join(traceback.format_exception(error))
    local = folder if folder and "://" not in folder and os.path.isdir(folder) else None
    for place in (local, tempfile.gettempdir()):
        if place is None:
            continue
        try:
            with tempfile.NamedTemporaryFile(
                "w", dir=place, prefix="error-", suffix=".log", delete=False, encoding="utf-8",
                errors="backslashreplace",
            ) as file:  # fmt: skip
                file.write(text)
            return f"in {file.name}"
        except OSError:
            continue
    return f"this:\n{text}"
