"""Graceful stop on SIGTERM (a preempted machine) and SIGINT (Ctrl-C), after the current step."""

import contextlib
import signal
import threading
import time
from typing import Any

import tf_keras

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Interrupted

SIGNALS = (signal.SIGTERM, signal.SIGINT)
POLL_SECONDS = 3.0


class StopRequest:
    """Records the number of the first signal; a second signal has its usual effect."""

    def __init__(self) -> None:
        self.signal_number: Any = None
        self._before: dict[signal.Signals, Any] = {}

    def interrupted(self, step):
        """Returns the `Interrupted` to raise after saving a step."""
        return Interrupted(
            f"Stopped at step {step}, which is saved. Run the same command to continue.",
            self.signal_number,
        )

    def _handle(self, number, frame):
        self.signal_number = number
        self._restore()

    def _restore(self):
        for number, handler in self._before.items():
            signal.signal(number, handler)


class StopRelay(tf_keras.callbacks.Callback):
    """Passes a worker's request to stop on to the chief, in a file in a shared folder."""

    _supports_tf_logs = True

    def __init__(self, path, stop, is_chief):
        super().__init__()
        self.path, self.stop, self.is_chief = path, stop, is_chief
        self.polled_at, self.sent = 0.0, False
        if is_chief:
            self._pop_message()  # A message to an earlier run.

    def on_train_batch_end(self, batch, logs=None):
        stopping = self.stop.signal_number is not None
        if not self.is_chief and stopping and not self.sent:
            storage.write_text(self.path, "")
            self.sent = True
        if self.is_chief and not stopping and time.monotonic() - self.polled_at > POLL_SECONDS:
            self.polled_at = time.monotonic()
            if self._pop_message():
                print("Another worker received a request to stop: all workers stop.", flush=True)
                self.stop.signal_number = signal.SIGTERM

    def _pop_message(self):
        """Removes the message file; returns whether it existed."""
        exists = storage.exists(self.path)
        if exists:
            storage.remove(self.path)
        return exists


@contextlib.contextmanager
def catch_signals():
    """Yields a `StopRequest` that handles signals until the end of the context.

    Python delivers signals to the main thread only; in other threads the request stays empty.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    request._before = {number: signal.signal(number, request._handle) for number in SIGNALS}
    try:
        yield request
    finally:
        request._restore()
