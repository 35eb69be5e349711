"""The exceptions that end a command with one message."""


class InputError(ValueError):
    """Something given to us is wrong: a flag, a file, a checkpoint.

    The message says what was wrong, what was received and how to mend it. The commands print it
    without a traceback and exit with status 1.
    """


class Diverged(InputError):
    """Training ended in a loss that is not finite; a sweep notes it and goes on."""


class WorkerLost(RuntimeError):
    """Another worker is gone, and training cannot go on without it."""


class Interrupted(Exception):
    """The process was asked to stop, and has saved its work.

    Args:
      message: what was saved, and how to go on.
      signal_number: of the signal that asked for it.
    """

    def __init__(self, message, signal_number):
        super().__init__(message)
        self.exit_status = 128 + signal_number
