"""Runs of a sweep, several at a time, each in a process of its own (`--parallel_trials`)."""

import collections
import contextlib
import io
import os
import queue
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf
from absl import logging

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.command import DeviceConfig
from adapter_bert_tf.errors import Conflict, Interrupted, OutOfMemory, WorkerLost
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.sweeps import worker
from adapter_bert_tf.sweeps.messages import Job, Outcome, Setup
from adapter_bert_tf.sweeps.results import Row
from adapter_bert_tf.training.interruption import catch_signals

POLL_SECONDS = 0.5
SECONDS_TO_STOP = 60.0

Events: TypeAlias = "queue.SimpleQueue[tuple[Worker, Outcome | None]]"


class RemoteTraceback(Exception):
    """The traceback of an error in another process, as its cause."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def check_devices(processes: int, devices: Sequence[DeviceConfig]) -> None:
    """Raises `InputError` for devices that processes cannot share."""
    if processes > 1 and any(device.strategy == "tpu" for device in devices):
        raise Conflict(
            f"--parallel_trials={processes}: one process at a time uses a TPU. Leave it out."
        )


def run_in_parallel(
    runner: TaskRunner,
    configs: Sequence[RunConfig],
    processes: int,
    begin: Callable[[RunConfig], None],
    done: Callable[[RunConfig, Row], None],
) -> None:
    """Executes runs in at most `processes` processes.

    When a run fails, no other starts; those that have started finish, and the error is raised.

    Args:
      runner: of the command.
      configs: of the runs.
      processes: number of processes.
      begin: called before a run starts.
      done: called with the row of a run that finished.

    Raises:
      Interrupted: on a request to stop; runs in training have saved a checkpoint.
      WorkerLost: when a process ends unexpectedly.
    """
    waiting = collections.deque(configs)
    count = min(processes, len(waiting))
    events: Events = queue.SimpleQueue()
    workers: list[Worker] = []
    failure: Outcome | None = None

    def start_next(idle: Worker) -> None:
        if waiting and not failure and stop.signal_number is None:
            begin(waiting[0])
            idle.start(Job(runner, waiting.popleft()))

    with catch_signals() as stop:
        try:
            for setup in _setups(count, [config.device for config in configs]):
                workers.append(Worker(setup, events))
                start_next(workers[-1])
            stopping = False
            while any(one.config for one in workers):
                if stop.signal_number is not None and not stopping:
                    stopping = True
                    for one in workers:
                        one.process.terminate()
                try:
                    sender, outcome = events.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                config, sender.config = sender.config, None
                if config is None:  # An idle process has ended.
                    continue
                outcome = outcome or sender.lost()
                if outcome.row is not None:
                    done(config, outcome.row)
                elif not stopping:
                    failure = failure or outcome
                    print(f"[{sender.name}] did not finish, and no further run starts.", flush=True)
                start_next(sender)
        finally:
            for one in workers:
                one.ask_to_end()
            for one in workers:
                one.end()
        if stop.signal_number is not None:
            raise Interrupted(
                "Stopped. Run the same command to continue.",
                stop.signal_number,
            )
    if failure:
        raise _error_of(failure) from RemoteTraceback(failure.traceback)


def _error_of(failure: Outcome) -> Exception:
    """Returns the error of a run that did not finish."""
    error = failure.error or WorkerLost("A run was stopped. The same command continues it.")
    if isinstance(error, OutOfMemory):
        more = "Runs in parallel share it: lower --parallel_trials."
        return OutOfMemory(f"{error} {more}", *error.arguments)
    return error


def _setups(count: int, devices: Sequence[DeviceConfig]) -> list[Setup]:
    """Returns the setups of the processes; runs on one device use the GPUs in turn.

    All processes have TensorFlow's threads for all cores: with fewer threads the last digits differ
    (and the work took as long, MiniLM on two cores).
    """
    all_gpus = tf.config.list_physical_devices("GPU")
    gpus = [all_gpus.index(gpu) for gpu in tf.config.get_visible_devices("GPU")]
    in_turn = len(gpus) > 1 and all(device.strategy == "one_device" for device in devices)
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return [
        Setup(
            argv=sys.argv,
            main=spec and spec.name,
            verbosity=logging.get_verbosity(),
            gpus=[gpus[number % len(gpus)]] if in_turn else gpus,
            mark=uuid.uuid4().hex,
        )
        for number in range(count)
    ]


class Worker:
    """A process that executes one run at a time; its lines appear after the name of the run.

    Attributes:
      config: of the run that it executes; None if it is idle.
      name: name of its latest run.
    """

    def __init__(self, setup: Setup, events: Events) -> None:
        path = [str(entry) for entry in sys.path]
        code = f"import sys; sys.path[:] = {path!r}; import {worker.__name__} as w; w.main()"
        self.config: RunConfig | None = None
        self.name, self._mark, self._events = "", setup.mark, events
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", code],  # As `before_tensorflow` has it.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Ctrl-C reaches the process of the command alone, which asks each worker to stop once.
            start_new_session=True,
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        )
        self._send(setup)
        threading.Thread(target=self._relay, daemon=True).start()

    def start(self, job: Job) -> None:
        """Executes a run."""
        self.config, self.name = job.config, os.path.basename(job.config.output.folder)
        self._send(job)

    def lost(self) -> Outcome:
        """Returns the outcome of the run of a process that ended unexpectedly."""
        status = self.process.wait()
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return Outcome(
            error=WorkerLost(
                f"The process of the run {self.name} {how}, perhaps because memory is short. "
                "Run the same command to continue, or use a lower --parallel_trials."
            )
        )

    def ask_to_end(self) -> None:
        """Asks the process to end, and to stop a run that it executes."""
        if self.config:
            self.process.terminate()
        else:
            with contextlib.suppress(BrokenPipeError):
                self._stdin.close()

    def end(self) -> None:
        """Waits for the end of the process; kills it after a while."""
        try:
            self.process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def _stdin(self) -> io.BufferedWriter:
        assert isinstance(self.process.stdin, io.BufferedWriter)
        return self.process.stdin

    def _send(self, value: Setup | Job) -> None:
        with contextlib.suppress(BrokenPipeError):  # The end of its output tells that it is lost.
            self._stdin.write(f"{value.to_line()}\n".encode())
            self._stdin.flush()

    def _relay(self) -> None:
        """Prints the lines of the process, and passes the outcomes of its runs on."""
        try:
            for line in io.TextIOWrapper(self.process.stdout, "utf-8", "replace"):  # type: ignore
                text, _, outcome = line.partition(self._mark)
                if text.strip():
                    # The process would wait for a reader if an error ended this thread.
                    with contextlib.suppress(OSError, ValueError):
                        print(f"[{self.name}] {text.rstrip()}\n", end="", flush=True)
                if outcome:
                    self._events.put((self, Outcome.from_line(outcome)))
        except ValueError:  # The process was killed while it wrote an outcome.
            self.process.kill()
        finally:
            self._events.put((self, None))
