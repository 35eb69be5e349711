"""Errors of commands: one message for each, and a log of the traceback if it is unexpected."""

import argparse
import errno
import faulthandler
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Collection, Sequence

from adapter_bert_tf.cli.help_page import CommandParser
from adapter_bert_tf.config.messages import spell_for_command
from adapter_bert_tf.errors import InputError, is_out_of_memory
from adapter_bert_tf.permissions import denied
from adapter_bert_tf.sanitize import is_utf8, preview, printable
from adapter_bert_tf.training.device.kernels import choose_kernels

NO_MEMORY = "The memory of this machine is not enough. Use smaller batches, or a shorter length."
GPU_HINT = (
    " `adapter-bert doctor` looks for what the GPU lacks. CUDA_VISIBLE_DEVICES=-1 selects the CPU."
)
# Words of TensorFlow's and XLA's messages on NVIDIA's cards, drivers, libraries and compilers.
GPU_WORDS = re.compile(
    r"CUDA|cuda|cuDNN|CUDNN|cublas|BLAS support|DNN library|NCCL|PTX|ptxas|libdevice"
)
# Lines before and after the cause in an error of a graph: where its operation was defined.
STACK_LINES = re.compile(
    r"\s*(Graph execution error:|Detected at node |File \"|<stack traces|\[\[\{\{node |"
    r"\d+ root error)"
)
NO_ROOM = "There is no room left on the disk. Make some, and give the same command again."


def before_tensorflow() -> None:
    """Sets TensorFlow's environment variables, unless the user has set them.

    Level 3 because TensorFlow 2.20 reports missing GPUs and its own pruning of graphs as errors.
    Without legacy Keras it also loads Keras 3, which takes nearly a second.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    choose_kernels()
    # oneDNN's products point the stack into the heap, where a signal's handler that runs meanwhile
    # overwrites it (oneDNN#4845). This gives the main thread a stack of its own for handlers.
    if sys.__stderr__ is not None and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)


def program_name(module: str) -> str:
    """Returns the words that start this process."""
    if os.path.basename(sys.argv[0]) == "adapter-bert" and len(sys.argv) > 1:
        return f"adapter-bert {sys.argv[1]}"
    return f"python -m {module}"


def command_parser(module: str, description: str | None) -> CommandParser:
    """Returns the parser of `python -m MODULE`, with the docstring of its command."""
    return CommandParser(
        prog=program_name(module),
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def require_utf8(words: Sequence[str]) -> None:
    """Raises `InputError` for words that are not UTF-8, which TensorFlow requires."""
    for word in words:
        if not is_utf8(word):
            raise InputError(
                f"All arguments must be UTF-8. Received: {preview(word)}. Encode texts in UTF-8; "
                "rename files and folders."
            )


def run_guarded(run: Callable[[], int], flags: Collection[str]) -> int:
    """Runs a command without an output folder; returns its exit status, 1 for an error.

    Args:
      run: function that returns the exit status.
      flags: names of the command's flags, for messages.
    """
    before_tensorflow()
    try:
        require_utf8(sys.argv)
        return run()
    except InputError as error:
        message = spell_for_command(error, flags)
    except Exception as error:
        message = error_report(error, None)
    print(f"error: {message}", file=sys.stderr)
    return 1


def error_report(error: BaseException, folder: str | None) -> str:
    """Returns one message for an unexpected error, and writes its traceback to a log.

    A denied permission needs no log. The log is in the run's folder, or in a temporary one.
    """
    if message := denied(error):
        return printable(message)
    return f"{_description(error)} The traceback is {_log(error, folder)}"


def _description(error: BaseException) -> str:
    whole = str(error)
    if is_tensorflows := _is_tensorflow_error(error, "OpError"):
        whole = _cause(whole)
    text = " ".join(whole.split())[:300] or type(error).__name__
    if is_out_of_memory(error):
        return NO_MEMORY
    if isinstance(error, OSError):
        return f"{NO_ROOM} ({text})" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"{text}."
    if _is_tensorflow_error(error, "ResourceExhaustedError"):
        return NO_ROOM if "No space" in text or "space left" in text else NO_MEMORY
    if is_tensorflows:
        hint = GPU_HINT if GPU_WORDS.search(whole) else ""
        return f"TensorFlow failed: {text.rstrip('.')}.{hint}"
    return f"This should not have happened ({type(error).__name__}: {text})."


def _cause(text: str) -> str:
    """Returns a message of TensorFlow without the places where its operation was defined."""
    lines = [line for line in text.splitlines() if not STACK_LINES.match(line)]
    return re.sub(r"\{\{function_node [^}]*\}\} ?", "", "\n".join(lines))


def _is_tensorflow_error(error: BaseException, name: str) -> bool:
    """Whether an error has a class of TensorFlow, which need not be loaded."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(error, getattr(tf.errors, name))


def _log(error: BaseException, folder: str | None) -> str:
    """Writes the traceback and returns its place, or itself if no folder is writable."""
    text = "".join(traceback.format_exception(error))
    is_local = folder and "://" not in folder and os.path.isdir(folder)
    for place in ([folder] if is_local else []) + [tempfile.gettempdir()]:
        try:
            number, path = tempfile.mkstemp(".log", "error-", place)
            with open(number, "wb") as file:
                file.write(text.encode("utf-8", "backslashreplace"))
            return f"in {path}"
        except OSError:
            continue
    return f"this:\n{text}"
