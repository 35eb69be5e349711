"""Exceptions that end a command with one message."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from adapter_bert_tf.sanitize import preview, printable, truncate

MAX_LENGTH = 8000  # Characters of a message.


class InputError(ValueError):
    """An invalid argument, file or checkpoint; `code` names its kind, "invalid" or as below.

    Commands print the message without a traceback, with flags in place of arguments
    (`config/messages.py`), and exit with status 1. Control characters are escaped, because a
    message may quote untrusted text.

    Args:
      message: what is wrong, what was received, how to fix it.
      *arguments: the Python arguments that the message names, spelled as in the message: `top_k`,
        or `train_layer_norm=False`.
    """

    code = "invalid"

    def __init_subclass__(cls, code: str) -> None:
        cls.code = code

    def __init__(self, message: str, *arguments: str) -> None:
        super().__init__(truncate(printable(message, keep="\n\t"), MAX_LENGTH))
        self.arguments = arguments


class Missing(InputError, code="missing"):
    """A setting that others need is not given."""


class Conflict(InputError, code="conflict"):
    """Settings, or a setting and an adapter, exclude each other."""


class NotFound(InputError, code="not_found"):
    """No file, folder, adapter or column of this name exists."""


class Damaged(InputError, code="damaged"):
    """A file is incomplete, or not of its format."""


class Mismatch(InputError, code="mismatch"):
    """An adapter, base or data belong to another task, base or run."""


class Occupied(InputError, code="occupied"):
    """The output would replace something else."""


class Unsupported(InputError, code="unsupported"):
    """A valid file or model of a kind that this package does not compute."""


class Overflowed(Unsupported, code="unsupported"):
    """A computation with a value that float16 cannot hold."""


class Unavailable(InputError, code="unavailable"):
    """What is needed cannot be read, written, reached or imported."""


class Diverged(InputError, code="diverged"):
    """The training loss is not finite; a sweep records it and continues."""


class OutOfMemory(InputError, code="out_of_memory"):
    """A batch needs more memory than the device, or this machine, has free."""


@contextlib.contextmanager
def memory_context(advice: Callable[[], str], *arguments: str) -> Iterator[None]:
    """Raises `OutOfMemory` in place of an error of TensorFlow, XLA or Python about memory.

    Args:
      advice: function that returns what to change.
      *arguments: those that the advice names, as of `InputError`.
    """
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        message = f"{advice()} {_memory_line(error)}".rstrip()
        raise OutOfMemory(message, *arguments) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error is about memory; TensorFlow, which raises it, need not be loaded.

    XLA raises most of them as `InternalError`: "Failed to load in-memory CUBIN:
    CUDA_ERROR_OUT_OF_MEMORY". A full disk is a `ResourceExhaustedError`, too.
    """
    if isinstance(error, MemoryError):
        return True
    is_tensorflows = any(cls.__name__ == "OpError" for cls in type(error).__mro__)
    return is_tensorflows and any(_is_about_memory(line) for line in str(error).splitlines())


def _is_about_memory(line: str) -> bool:
    words = ("oom when allocating", "out of memory", "_alloc_failed")
    return any(word in line.lower() for word in words)


def _memory_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if _is_about_memory(line)]
    return f"Received: {preview(lines[0])}" if lines else ""


@contextlib.contextmanager
def error_context(prefix: str) -> Iterator[None]:
    """Prefixes an `InputError` with the flag, file or task that it concerns."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{prefix}: {error}", *error.arguments) from error


def require_bools(**values: Any) -> None:
    """Raises `InputError` for an argument that is not a bool; the text "no" would be true."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise InputError(f"{name} is True or False. Received: {preview(value)}", name)


def require_lists(**values: Any) -> None:
    """Raises `InputError` for a value that is not a list or a similar ordered iterable."""
    for name, value in values.items():
        excluded = isinstance(value, str | bytes | Mapping | set | frozenset)
        if excluded or not isinstance(value, Iterable):
            raise InputError(f"{name} is a list. Received: {preview(value)}", name)


def require_type(name: str, value: Any, kind: type, example: str) -> None:
    """Raises `InputError` for an argument of another type.

    Args:
      name: name of the argument.
      value: the value received.
      kind: the required type.
      example: a valid value, as written in Python.
    """
    if not isinstance(value, kind):
        raise InputError(
            f"{name} is a {kind.__name__}: {example}. Received: {preview(value)}", name
        )


class WorkerLost(RuntimeError):
    """Another worker of a multi-worker training is lost."""


class Pruned(Exception):
    """A search stopped a run, whose score was not among the best at a step.

    Args:
      step: the step.
      steps: of the whole run.
      score: of the run at the step; higher is better.
    """

    def __init__(self, step: int, steps: int, score: float) -> None:
        super().__init__(f"Stopped at step {step} of {steps}, not among the best runs there.")
        self.step, self.score = step, score


class Interrupted(Exception):
    """The process stopped on a signal and saved its work.

    Args:
      message: what was saved, and how to continue.
      signal_number: number of the signal.
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_status = 128 + signal_number
