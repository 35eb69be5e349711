"""A process that executes runs of a sweep, one at a time, for the process of the command.

Standard input holds a pickled `Setup` and then a pickled `Job` for each run. Standard output holds
what the runs print, and after each run a line with its `Outcome`. When standard input ends during a
run, the process of the command is gone: the run saves a checkpoint and stops.
"""

import base64
import dataclasses
import importlib.machinery
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import BinaryIO

import tensorflow as tf
from absl import flags, logging

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import Interrupted
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.sweeps.one_run import execute
from adapter_bert_tf.sweeps.results import Row


@dataclasses.dataclass(frozen=True)
class Setup:
    """What a worker takes over from the process of the command.

    Args:
      argv: its `sys.argv`, because records contain the command.
      main: name of the module that it runs, with `python -m`; None for a script.
      verbosity: of its log.
      gpus: numbers of the GPUs to use.
      mark: text before the outcome of a run, which no run prints by itself.
    """

    argv: list[str]
    main: str | None
    verbosity: int
    gpus: list[int]
    mark: str


@dataclasses.dataclass(frozen=True)
class Job:
    """A run to execute."""

    runner: TaskRunner
    config: RunConfig


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


def main() -> None:
    """Executes the runs that standard input names, until it ends."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    commands = sys.stdin.buffer
    setup: Setup = pickle.load(commands)
    _apply(setup)
    cache, inbox = RunCache(), Inbox(commands)
    for job in inbox:
        text = base64.b64encode(pickle.dumps(_outcome(job, cache))).decode()
        inbox.is_busy = False
        print(f"{setup.mark}{text}", flush=True)


def _apply(setup: Setup) -> None:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    flags.FLAGS.mark_as_parsed()  # Else the log says that it comes before.
    logging.use_absl_handler()
    logging.set_verbosity(setup.verbosity)
    sys.argv = setup.argv
    if setup.main:
        sys.modules["__main__"].__spec__ = importlib.machinery.ModuleSpec(setup.main, None)
    all_gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices([all_gpus[number] for number in setup.gpus], "GPU")


def _outcome(job: Job, cache: RunCache) -> Outcome:
    try:
        return Outcome(row=execute(job.runner, job.config, cache))
    except Interrupted as stop:
        print(stop, flush=True)
        return Outcome()
    except Exception as error:
        return Outcome(error=_portable(error), traceback=traceback.format_exc())


def _portable(error: Exception) -> Exception:
    """Returns the error, or its text if another process cannot receive it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class Inbox:
    """The runs that arrive.

    Attributes:
      is_busy: whether a run is being executed; set when one is taken.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.is_busy = False
        self._stream = stream
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def __iter__(self) -> Iterator[Job]:
        while (job := self._jobs.get()) is not None:
            self.is_busy = True
            yield job

    def _read(self) -> None:
        try:
            while True:
                self._jobs.put(pickle.load(self._stream))
        except (EOFError, pickle.UnpicklingError):  # At the end, or in the middle of a job.
            self._jobs.put(None)
        if self.is_busy:
            # Nobody reads the output any more, and a line would end the run with an error.
            null = os.open(os.devnull, os.O_WRONLY)
            for descriptor in (1, 2):
                os.dup2(null, descriptor)
            os.kill(os.getpid(), signal.SIGTERM)
