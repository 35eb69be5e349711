"""What the process of a command and its workers send each other: a line of JSON each."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
import uuid
from typing import TYPE_CHECKING, Any

from absl import logging

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.lazy import tf

if TYPE_CHECKING:
    from adapter_bert_tf.run.task_runner import TaskRunner
    from adapter_bert_tf.sweeps.results import Row


@dataclasses.dataclass(frozen=True)
class Setup:
    """What a worker takes over from the process of the command.

    Args:
      argv: its `sys.argv`, because records contain the command.
      main: name of the module that it runs, with `python -m`; None for a script.
      verbosity: of its log.
      gpus: numbers of the GPUs to use; None for all that are visible.
      mark: text before the outcome of a run, which no run prints by itself.
      environment: TensorFlow's environment variables, on which the last digits may depend.
      folder: the working folder, from which paths count.
    """

    argv: list[str]
    main: str | None
    verbosity: int
    gpus: list[int] | None
    mark: str
    environment: dict[str, str]
    folder: str

    @classmethod
    def of_this_process(cls, gpus: list[int] | None) -> Setup:
        """What a worker takes over from this process."""
        spec = getattr(sys.modules.get("__main__"), "__spec__", None)
        return cls(
            argv=sys.argv,
            main=spec and spec.name,
            verbosity=logging.get_verbosity(),
            gpus=gpus,
            mark=uuid.uuid4().hex,
            environment={n: v for n, v in os.environ.items() if n.startswith("TF_")},
            folder=os.getcwd(),
        )

    def to_line(self) -> str:
        """This object as a line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_line(cls, line: str | bytes) -> Setup:
        """The object of a line. Raises `ValueError` for an incomplete one."""
        return cls(**json.loads(line))


@dataclasses.dataclass(frozen=True)
class Job:
    """A run to execute.

    Args:
      runner, config: of the run.
      halving: as for `one_run.execute`.
    """

    runner: TaskRunner
    config: RunConfig
    halving: str | None = None

    @property
    def name(self) -> str:
        """Name of the run: that of its folder."""
        return os.path.basename(self.config.output.folder)

    def to_line(self) -> str:
        """This object as a line."""
        kind, config = type(self.runner), self.config
        values = {"runner": [kind.__module__, kind.__qualname__], "command": config.command.value}
        values |= {"values": config.values, "given": sorted(config.given)}
        return json.dumps(values | {"halving": self.halving})

    @classmethod
    def from_line(cls, line: str | bytes) -> Job:
        """The object of a line. Raises `ValueError` for an incomplete one."""
        content = json.loads(line)
        module, name = content["runner"]
        runner = getattr(importlib.import_module(module), name)()
        command = Command(content["command"])
        config = RunConfig.from_values(command, content["values"], content["given"])
        return cls(runner, config, content["halving"])


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Args:
      row: its row; None if it did not finish.
      error: why it failed; None if it finished, or was asked to stop.
      traceback: of the error.
    """

    row: Row | None = None
    error: Exception | None = None
    traceback: str = ""

    def to_line(self) -> str:
        """This object as a line; numbers of NumPy become Python's."""
        error = self.error and error_values(self.error)
        values = {"row": self.row, "error": error, "traceback": self.traceback}
        return json.dumps(values, default=_plain)

    @classmethod
    def from_line(cls, line: str | bytes) -> Outcome:
        """The object of a line. Raises `ValueError` for an incomplete one."""
        content = json.loads(line)
        error = content["error"] and error_of(content["error"])
        return cls(content["row"], error, content["traceback"])


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def error_values(error: Exception) -> dict[str, Any]:
    """An error as plain values, from which `error_of` makes it again."""
    if isinstance(error, InputError):
        return {"kind": error.code, "message": str(error), "arguments": error.arguments}
    if isinstance(error, OSError) and error.errno is not None:
        filename = None if error.filename is None else os.fsdecode(error.filename)
        return {"kind": "os", "arguments": [error.errno, error.strerror, filename]}
    if isinstance(error, MemoryError):
        return {"kind": "memory", "message": str(error)}
    if isinstance(error, tf.errors.OpError):
        return {"kind": "tensorflow", "number": error.error_code, "message": error.message}
    return {"kind": "other", "message": f"{type(error).__name__}: {error}"}


def error_of(values: dict[str, Any]) -> Exception:
    """The error of values; a `RuntimeError` stands for classes of other libraries."""
    kinds: list[type[InputError]] = [InputError, *InputError.__subclasses__()]
    by_code = {kind.code: kind for kind in kinds}
    if values["kind"] in by_code:
        return by_code[values["kind"]](values["message"], *values["arguments"])
    if values["kind"] == "os":
        return OSError(*values["arguments"])
    if values["kind"] == "memory":
        return MemoryError(values["message"])
    if values["kind"] == "tensorflow":
        kind = tf.compat.v1.errors.exception_type_from_error_code(values["number"])
        error: Exception = kind(None, None, values["message"])
        return error
    return RuntimeError(values["message"])
