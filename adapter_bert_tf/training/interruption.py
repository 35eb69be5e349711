"""A request to stop (SIGTERM of a preempted machine, Ctrl-C) that lets the step finish first."""

import contextlib
import signal
import threading
import time
from typing import Any

import tf_keras

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Interrupted

SIGNALS = (signal.SIGTERM, signal.SIGINT)
LOOK_EVERY = 3.0  # Seconds.


class StopRequest:
    """Notes the first signal; a second one acts as ever.

    Attributes:
      signal_number: of the signal that came; None so far.
    """

    def __init__(self):
        self.signal_number: Any = None
        self._before = {}

    def interrupted(self, step):
        """The `Interrupted` to raise after a step that is saved."""
        return Interrupted(
            f"Stopped at step {step}, which is saved. The same command goes on from there.",
            self.signal_number,
        )

    def _note(self, number, frame):
        self.signal_number = number
        self._restore()

    def _restore(self):
        for number, handler in self._before.items():
            signal.signal(number, handler)


class TellChief(tf_keras.callbacks.Callback):
    """Of several workers, passes a request to stop on to the first, who alone saves.

    Args:
      path: of the file by which it is told, in a folder that all workers see.
      stop: this worker's `StopRequest`.
      is_chief: whether this is the first one.
    """

    _supports_tf_logs = True

    def __init__(self, path, stop, is_chief):
        super().__init__()
        self.path, self.stop, self.is_chief = path, stop, is_chief
        self.looked_at, self.told = 0.0, False
        if is_chief:
            self._hears()  # What is left of an earlier run.

    def on_train_batch_end(self, batch, logs=None):
        asked = self.stop.signal_number is not None
        if not self.is_chief and asked and not self.told:
            storage.write_text(self.path, "")
            self.told = True
        if self.is_chief and not asked and time.monotonic() - self.looked_at > LOOK_EVERY:
            self.looked_at = time.monotonic()
            if self._hears():
                print("Another worker is asked to stop, so all do.", flush=True)
                self.stop.signal_number = signal.SIGTERM

    def _hears(self):
        there = storage.exists(self.path)
        if there:
            storage.remove(self.path)
        return there


@contextlib.contextmanager
def watching():
    """Yields a `StopRequest` that listens until the end of the context.

    Python hands signals to the main thread only; elsewhere none comes.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    request._before = {number: signal.signal(number, request._note) for number in SIGNALS}
    try:
        yield request
    finally:
        request._restore()
