"""The one exception for everything a user can put right."""


class InputError(ValueError):
    """Something given to us is wrong: a flag, a file, a checkpoint.

    The message says what was wrong, what was received and how to mend it. The commands print it
    without a traceback and exit with status 1.
    """


class Diverged(InputError):
    """Training ended in a loss that is not finite; a sweep notes it and goes on."""
