"""A request to stop (SIGTERM of a preempted machine, Ctrl-C) that lets the step finish first."""

import contextlib
import signal
import threading

from adapter_bert_tf.errors import Interrupted

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """Notes the first signal; a second one acts as ever.

    Attributes:
      signal_number: of the signal that came; None so far.
    """

    def __init__(self):
        self.signal_number = None
        self._before = {}

    def interrupted(self, step):
        """The `Interrupted` to raise after a step that is saved."""
        return Interrupted(f"Stopped at step {step}, which is saved. The same command goes on from "
                           "there.", self.signal_number)

    def _note(self, number, frame):
        self.signal_number = number
        self._restore()

    def _restore(self):
        for number, handler in self._before.items():
            signal.signal(number, handler)


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
