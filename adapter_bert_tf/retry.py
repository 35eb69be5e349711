"""Patience with a store that stumbles: an operation is tried again, with a line that says so."""

import functools
import os
import random
import re
import time

# Read once by TensorFlow's client. It tries each request three times, then it is our turn; and it
# believes nothing that it saw before: another process may have written since.
os.environ.setdefault("GCS_RETRY_CONFIG_MAX_RETRIES", "2")
os.environ.setdefault("GCS_RETRY_CONFIG_INIT_DELAY_TIME_US", "500000")
os.environ.setdefault("GCS_STAT_CACHE_MAX_AGE", "0")

import tensorflow as tf

from adapter_bert_tf.errors import InputError

# What 429, 5xx and cut connections become when the client's patience is at an end.
TRANSIENT = (
    tf.errors.AbortedError,
    tf.errors.UnavailableError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
)
ATTEMPTS = 8
LONGEST_WAIT = 60.0  # Seconds.


def is_remote(path):
    """Whether a path is in a store such as gs://."""
    return "://" in str(path)


def retried(operation):
    """`operation`, a function of a path and more, tried again where a remote path fails for now.

    Raises:
      InputError: when access is denied (403), or the scheme is none that TensorFlow knows.
      tf.errors.OpError: everything else that does not pass, such as a path that is not there.
    """

    @functools.wraps(operation)
    def tried(path, *args, **kwargs):
        if not is_remote(path) and not any(is_remote(x) for x in args if isinstance(x, str)):
            return operation(path, *args, **kwargs)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return operation(path, *args, **kwargs)
            except tf.errors.UnimplementedError as error:
                raise InputError(
                    f"{path}: files are read and written at local paths and gs:// only. "
                    f"{reason(error)}. Copy them to one of these."
                ) from error
            except tf.errors.PermissionDeniedError as error:
                raise InputError(
                    f"{path}: access denied. {reason(error)} Give this machine's "
                    "account the role Storage Object Admin on the bucket, or sign in: "
                    "gcloud auth application-default login."
                ) from error
            except TRANSIENT as error:
                if attempt == ATTEMPTS:
                    raise
                _wait(path, error, attempt)

    return tried


def _wait(path, error, attempt):
    """Waits, about twice as long each time, and says why."""
    delay = float(os.environ.get("ADAPTER_BERT_RETRY_SECONDS", "1"))
    seconds = min(delay * 2 ** (attempt - 1), LONGEST_WAIT) * random.uniform(0.75, 1.25)
    print(
        f"{path}: {reason(error)} Trying again in {seconds:.1f} s ({attempt} of {ATTEMPTS - 1}).",
        flush=True,
    )
    time.sleep(seconds)


def reason(error):
    """The first line of what TensorFlow says of a failure; the rest is the service's JSON."""
    first = str(error.message).strip().split("\n")[0]
    return re.sub(r"^\{\{.*?\}\} ", "", first)[:200]  # The place in a graph says nothing to a user.
