"""Runs of a sweep, several at a time: the loop, and a pool of processes on this machine."""

import contextlib
import itertools
import queue
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import tensorflow as tf

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.command import DeviceConfig
from adapter_bert_tf.errors import Conflict, Interrupted, OutOfMemory, WorkerLost
from adapter_bert_tf.sweeps.messages import Job, Outcome, Setup
from adapter_bert_tf.sweeps.process import Events, WorkerProcess
from adapter_bert_tf.sweeps.results import Row
from adapter_bert_tf.training.interruption import catch_signals

POLL_SECONDS = 0.5


class RemoteTraceback(Exception):
    """The traceback of an error in another process, as its cause."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Ended(NamedTuple):
    """A run that a pool no longer executes."""

    job: Job
    outcome: Outcome


class Pool(Protocol):
    """What executes runs, several at a time."""

    def has_room(self) -> bool:
        """Whether it can start another run now."""

    def is_busy(self) -> bool:
        """Whether it executes runs."""

    def start(self, job: Job) -> None:
        """Starts a run."""

    def ended(self, seconds: float) -> list[Ended]:
        """Returns runs that have ended since the last call; waits for one at most so long."""

    def stop(self) -> None:
        """Asks the runs to stop with a checkpoint; they still count as busy until they end."""

    def close(self) -> None:
        """Stops what is left, and waits for its end."""


def run_in_parallel(
    jobs: Iterator[Job],
    pool: Pool,
    begin: Callable[[RunConfig], None],
    done: Callable[[RunConfig, Row], None],
) -> None:
    """Executes runs in a pool.

    When a run fails, no other starts; those that have started finish, and the error is raised.

    Args:
      jobs: the runs; the next is taken as soon as the pool has room for it.
      pool: closed at the end.
      begin: called before a run starts.
      done: called with the row of a run that finished.

    Raises:
      Interrupted: on a request to stop; runs in training have saved a checkpoint.
      WorkerLost: when a process ends unexpectedly.
    """
    failure: Outcome | None = None
    with catch_signals() as stop:
        with contextlib.closing(pool):
            stopping = False
            while True:
                while not (failure or stop.signal_number is not None) and pool.has_room():
                    if (job := next(jobs, None)) is None:
                        break
                    begin(job.config)
                    pool.start(job)
                if not pool.is_busy():
                    break
                if stop.signal_number is not None and not stopping:
                    stopping = True
                    pool.stop()
                for job, outcome in pool.ended(POLL_SECONDS):
                    if outcome.row is not None:
                        done(job.config, outcome.row)
                    elif not stopping:
                        failure = failure or outcome
                        print(
                            f"[{job.name}] did not finish, and no further run starts.", flush=True
                        )
        if stop.signal_number is not None:
            raise Interrupted("Stopped. Run the same command to continue.", stop.signal_number)
    if failure:
        raise _error_of(failure) from RemoteTraceback(failure.traceback)


def _error_of(failure: Outcome) -> Exception:
    """Returns the error of a run that did not finish."""
    error = failure.error or WorkerLost("A run was stopped. The same command continues it.")
    if isinstance(error, OutOfMemory):
        more = "Runs in parallel share it: lower --parallel_trials."
        return OutOfMemory(f"{error} {more}", *error.arguments)
    return error


class LocalPool:
    """Processes on this machine; they start as runs do.

    Args:
      count: most processes at a time.
      devices: of the runs, on which depends which GPUs a process uses.
    """

    def __init__(self, count: int, devices: Sequence[DeviceConfig]) -> None:
        self._setups = itertools.cycle(setups(count, devices))
        self._left = count
        self._events: Events = queue.SimpleQueue()
        self._jobs: dict[WorkerProcess, Job] = {}
        self._idle: list[WorkerProcess] = []
        self._all: list[WorkerProcess] = []

    def has_room(self) -> bool:
        """Whether a process is idle or can be started."""
        return bool(self._idle or self._left)

    def is_busy(self) -> bool:
        """Whether a process executes a run."""
        return bool(self._jobs)

    def start(self, job: Job) -> None:
        """Starts a run in an idle process, or in a new one."""
        if self._idle:
            process = self._idle.pop()
        else:
            process = WorkerProcess(next(self._setups), self._events, _show)
            self._left -= 1
            self._all.append(process)
        self._jobs[process] = job
        process.start(job.name, job.to_line())

    def ended(self, seconds: float) -> list[Ended]:
        """Returns the next run that has ended."""
        try:
            process, line = self._events.get(timeout=seconds)
        except queue.Empty:
            return []
        job, process.is_busy = self._jobs.pop(process, None), False
        if line is None:
            self._left += 1
        if job is None:  # An idle process has ended.
            self._idle = [one for one in self._idle if one is not process]
            return []
        if line is not None:
            self._idle.append(process)
            return [Ended(job, Outcome.from_line(line))]
        advice = "Run the same command to continue, or use a lower --parallel_trials."
        return [Ended(job, Outcome(error=WorkerLost(f"{process.how_lost()} {advice}")))]

    def stop(self) -> None:
        """Asks the processes with a run to end."""
        for process in self._jobs:
            process.process.terminate()

    def close(self) -> None:
        """Ends all processes."""
        for process in self._all:
            process.ask_to_end()
        for process in self._all:
            process.end()


def _show(name: str, text: str) -> None:
    print(f"[{name}] {text}\n", end="", flush=True)


def check_devices(processes: int, devices: Sequence[DeviceConfig]) -> None:
    """Raises `InputError` for devices that processes cannot share."""
    if processes > 1 and any(device.strategy == "tpu" for device in devices):
        raise Conflict(
            f"--parallel_trials={processes}: one process at a time uses a TPU. Leave it out."
        )


def setups(count: int, devices: Sequence[DeviceConfig]) -> list[Setup]:
    """Returns the setups of the processes; runs on one device use the GPUs in turn.

    All processes have TensorFlow's threads for all cores: with fewer threads the last digits differ
    (and the work took as long, MiniLM on two cores).
    """
    all_gpus = tf.config.list_physical_devices("GPU")
    gpus = [all_gpus.index(gpu) for gpu in tf.config.get_visible_devices("GPU")]
    in_turn = len(gpus) > 1 and all(device.strategy == "one_device" for device in devices)
    return [
        Setup.of_this_process([gpus[number % len(gpus)]] if in_turn else gpus)
        for number in range(count)
    ]
