"""What Ray executes on a machine of the cluster: a description of it, and a run.

A run has a process of its own, as on the machine of the command. Signals, threads and life of
Ray's worker are Ray's, and with TensorFlow 2.20 in it, it aborted at its end ("Mutex corrupt", Ray
2.60). If that worker ends, the process saves a checkpoint.
"""

import importlib.metadata
import json
import os
import queue
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.output.lock import BEAT, STALE, InUse
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.sweeps.messages import Outcome, Setup
from adapter_bert_tf.sweeps.process import Events, WorkerProcess

PRECISION = "adapter_bert_tf.run.decided_precision"  # Not imported here: it loads TensorFlow.
POLL_SECONDS = 0.5
RETRY_SECONDS = 5.0


class RunLost(Exception):
    """The process of a run ended unexpectedly. Ray starts the run again."""


def execute_run(setup: str, name: str, job: str) -> str:
    """Executes a run; returns the line of its `Outcome`.

    A machine that was lost seems to hold the run's lock until its heartbeat is too old.

    Args:
      setup: line of a `Setup`.
      name: of the run.
      job: line of its `Job`.

    Raises:
      RunLost: when the run's process ends unexpectedly.
    """
    events: Events = queue.SimpleQueue()
    process = WorkerProcess(Setup.from_line(setup), events, lambda name, text: _print(text))
    end = time.monotonic() + STALE + 2 * BEAT
    try:
        while True:
            process.start(name, job)
            line = _next_outcome(events)
            process.is_busy = False
            if line is None:
                raise RunLost(process.how_lost())
            error = Outcome.from_line(line).error
            if not isinstance(error, InUse) or time.monotonic() > end:
                return line
            _print(f"Waiting for the end of a lost worker. {error}")
            time.sleep(RETRY_SECONDS)
    except KeyboardInterrupt:  # The command asks for a checkpoint and the end of the run.
        return Outcome().to_line()
    finally:
        process.ask_to_end()
        process.end()


def _next_outcome(events: Events) -> str | None:
    """Waits for an event; polls, because Ray interrupts Python code only."""
    while True:
        try:
            return events.get(timeout=POLL_SECONDS)[1]
        except queue.Empty:
            continue


def _print(text: str) -> None:
    print(text, flush=True)  # Ray prints it where the command runs, after the name of the run.


def describe(environment: dict[str, str], paths: Sequence[str], decides: bool) -> str:
    """Returns what a command must know of a machine, as a JSON object.

    Args:
      environment: as of `Setup`.
      paths: of which the result lists those that are missing.
      decides: whether the result has the fastest precision there, for which a process loads
        TensorFlow.

    Raises:
      RuntimeError: when TensorFlow cannot be loaded.
    """
    facts: dict[str, Any] = {"host": socket.gethostname()}
    try:
        facts["versions"] = installed_versions()
    except importlib.metadata.PackageNotFoundError as error:
        return json.dumps(facts | {"versions": {error.name: "not installed"}})
    facts["missing"] = [path for path in paths if not storage.exists(path)]
    if decides:
        facts["precision"] = _fastest_precision(environment)
    return json.dumps(facts)


def _fastest_precision(environment: dict[str, str]) -> str:
    code = (
        f"import sys; sys.path[:] = {[str(entry) for entry in sys.path]!r}; "
        f"from {PRECISION} import fastest_here; print(fastest_here()[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"TensorFlow ends with status {done.returncode}: {done.stderr[-300:]}")
    return done.stdout.split()[-1]
