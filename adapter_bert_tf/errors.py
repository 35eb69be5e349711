"""The exceptions that end a command with one message."""

from collections.abc import Iterable, Mapping
from typing import Any

from adapter_bert_tf.sanitize import preview, printable, truncate

LONGEST = 8000  # Characters of a message.


class InputError(ValueError):
    """Something given to us is wrong: an argument, a file, a checkpoint.

    The commands print the message without a traceback, with flags for arguments
    (`config/messages.py`), and exit with status 1. Control characters in it are escaped, because a
    message may quote what others wrote.

    Args:
      message: what was wrong, what was received and how to mend it.
      *arguments: the arguments of Python functions that the message names, as they stand in it:
        `top_k`, or `train_layer_norm=False`.
    """

    def __init__(self, message: str, *arguments: str) -> None:
        super().__init__(truncate(printable(message, keep="\n\t"), LONGEST))
        self.arguments = arguments


def require_truths(**values: Any) -> None:
    """Raises `InputError` for an argument that is neither True nor False: "no" would be true."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise InputError(f"{name} is True or False. Received: {preview(value)}", name)


def require_lists(**values: Any) -> None:
    """Raises `InputError` for what is no list nor like one: without an order, or one text."""
    for name, value in values.items():
        other = isinstance(value, str | bytes | Mapping | set | frozenset)
        if other or not isinstance(value, Iterable):
            raise InputError(f"{name} is a list. Received: {preview(value)}", name)


def require_kind(name: str, value: Any, kind: type, example: str) -> None:
    """Raises `InputError` for an argument of another kind.

    Args:
      name: of the argument.
      value: what was received.
      kind: that it has to be of.
      example: such a value, as one writes it.
    """
    if not isinstance(value, kind):
        raise InputError(
            f"{name} is a {kind.__name__}: {example}. Received: {preview(value)}", name
        )


class Diverged(InputError):
    """Training ended in a loss that is not finite; a sweep notes it and goes on."""


class WorkerLost(RuntimeError):
    """Another worker is gone, and training cannot go on without it."""


class Interrupted(Exception):
    """The process was asked to stop, and has saved its work.

    Args:
      message: what was saved, and how to go on.
      signal_number: of the signal that asked for it.
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_status = 128 + signal_number
