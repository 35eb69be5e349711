"""A process that executes runs (`worker.py`), as the process that starts it sees it."""

import contextlib
import io
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TypeAlias

from adapter_bert_tf.sweeps.messages import Setup

WORKER = "adapter_bert_tf.sweeps.worker"  # Not imported here: it loads TensorFlow.
SECONDS_TO_STOP = 60.0

# A process, and the line of an `Outcome`; None when the process has ended.
Events: TypeAlias = "queue.SimpleQueue[tuple[WorkerProcess, str | None]]"


class WorkerProcess:
    """A process that executes one run at a time.

    Args:
      setup: what it takes over.
      events: where the outcomes of its runs go.
      show: function that prints a line of a run, with the name of the run before it.

    Attributes:
      is_busy: whether it executes a run; whoever takes an event of it sets this to False.
      name: name of its latest run.
    """

    def __init__(self, setup: Setup, events: Events, show: Callable[[str, str], None]) -> None:
        path = [str(entry) for entry in sys.path]
        code = f"import sys; sys.path[:] = {path!r}; import {WORKER} as w; w.main()"
        self.is_busy, self.name = False, ""
        self._mark, self._events, self._show = setup.mark, events, show
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", code],  # As `before_tensorflow` has it.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Ctrl-C reaches the process of the command alone, which asks each worker to stop once.
            start_new_session=True,
            cwd=setup.folder if os.path.isdir(setup.folder) else None,
            env=os.environ | setup.environment | {"PYTHONIOENCODING": "utf-8"},
        )
        self._send(setup.to_line())
        threading.Thread(target=self._relay, daemon=True).start()

    def start(self, name: str, job: str) -> None:
        """Executes a run, given the line of its `Job`."""
        self.is_busy, self.name = True, name
        self._send(job)

    def how_lost(self) -> str:
        """Returns a sentence about the unexpected end of the process."""
        status = self.process.wait()
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"The process of the run {self.name} {how}, perhaps because memory is short."

    def ask_to_end(self) -> None:
        """Asks the process to end, and to stop a run that it executes."""
        if self.is_busy:
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

    def _send(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # The end of its output tells that it is lost.
            self._stdin.write(f"{line}\n".encode())
            self._stdin.flush()

    def _relay(self) -> None:
        """Shows the lines of the process, and passes the outcomes of its runs on."""
        try:
            for line in io.TextIOWrapper(self.process.stdout, "utf-8", "replace"):  # type: ignore
                text, _, outcome = line.partition(self._mark)
                if text.strip():
                    # The process would wait for a reader if an error ended this thread.
                    with contextlib.suppress(OSError, ValueError):
                        self._show(self.name, text.rstrip())
                if outcome.endswith("\n"):  # Otherwise it was killed while it wrote.
                    self._events.put((self, outcome))
        finally:
            self._events.put((self, None))
