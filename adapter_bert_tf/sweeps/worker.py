"""A process that executes runs of a sweep, one at a time, for the process of the command.

Standard input has a line with a `Setup`, and then one with a `Job` for each run. Standard output
has what the runs print, and after each run a line with its `Outcome`. When standard input ends
during a run, the process of the command is gone: the run saves a checkpoint and stops.
"""

import contextlib
import importlib.machinery
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import IO

import tensorflow as tf
from absl import flags, logging

from adapter_bert_tf.errors import Interrupted
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.sweeps.messages import Job, Outcome, Setup
from adapter_bert_tf.sweeps.one_run import execute


def main() -> None:
    """Executes the runs that standard input names, until it ends."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    # Without a buffer: Python aborts at its end if a thread that waits for input holds its lock.
    commands = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115
    setup = Setup.from_line(commands.readline())
    _apply(setup)
    cache, inbox = RunCache(), Inbox(commands)
    for job in inbox:
        line = _outcome(job, cache).to_line()
        inbox.is_busy = False
        print(f"{setup.mark}{line}", flush=True)


def _apply(setup: Setup) -> None:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    flags.FLAGS.mark_as_parsed()  # Else the log says that it comes before.
    logging.use_absl_handler()
    logging.set_verbosity(setup.verbosity)
    sys.argv = setup.argv
    if setup.main:
        sys.modules["__main__"].__spec__ = importlib.machinery.ModuleSpec(setup.main, None)
    if setup.gpus is not None:
        all_gpus = tf.config.list_physical_devices("GPU")
        tf.config.set_visible_devices([all_gpus[number] for number in setup.gpus], "GPU")


def _outcome(job: Job, cache: RunCache) -> Outcome:
    try:
        return Outcome(row=execute(job.runner, job.config, cache, job.halving))
    except Interrupted as stop:
        print(stop, flush=True)
        return Outcome()
    except Exception as error:
        return Outcome(error=error, traceback=traceback.format_exc())


class Inbox:
    """The runs that arrive.

    Attributes:
      is_busy: whether a run is being executed; set when one is taken.
    """

    def __init__(self, stream: IO[bytes]) -> None:
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
            with contextlib.suppress(ValueError):  # The command was killed while it wrote.
                for line in self._stream:
                    self._jobs.put(Job.from_line(line))
        finally:
            self._jobs.put(None)
        if self.is_busy:
            # Nobody reads the output any more, and a line would end the run with an error.
            null = os.open(os.devnull, os.O_WRONLY)
            for descriptor in (1, 2):
                os.dup2(null, descriptor)
            os.kill(os.getpid(), signal.SIGTERM)
