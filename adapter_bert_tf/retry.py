"""Retries of remote file operations, with backoff and a printed reason."""

import functools
import os
import random
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

# TensorFlow's client reads these once: it tries each request three times, and caches no stats,
# because another process may have written since.
os.environ.setdefault("GCS_RETRY_CONFIG_MAX_RETRIES", "2")
os.environ.setdefault("GCS_RETRY_CONFIG_INIT_DELAY_TIME_US", "500000")
os.environ.setdefault("GCS_STAT_CACHE_MAX_AGE", "0")

import tensorflow as tf

from adapter_bert_tf.errors import Unavailable, Unsupported

# What 429, 5xx and lost connections become after the client's own retries.
TRANSIENT = (
    tf.errors.AbortedError,
    tf.errors.UnavailableError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
)
ATTEMPTS = 8
MAX_WAIT_SECONDS = 60.0
Operation = TypeVar("Operation", bound=Callable[..., Any])


def is_remote(path: object) -> bool:
    """Whether a path is in an object store such as gs://."""
    return "://" in str(path)


def retry_remote(operation: Operation) -> Operation:
    """Decorator that retries a function of a path, and more, if a remote path fails transiently.

    Raises:
      InputError: for denied access (403), or a scheme that TensorFlow does not know.
      tf.errors.OpError: for other errors, such as a missing path.
    """

    @functools.wraps(operation)
    def with_retries(path, *args, **kwargs):
        if not is_remote(path) and not any(is_remote(x) for x in args if isinstance(x, str)):
            return operation(path, *args, **kwargs)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return operation(path, *args, **kwargs)
            except tf.errors.UnimplementedError as error:
                raise Unsupported(
                    f"{path}: files must be at local paths or gs://. {reason(error)}."
                ) from error
            except tf.errors.PermissionDeniedError as error:
                raise Unavailable(
                    f"{path}: access denied. {reason(error)} Give this machine's account the role "
                    "Storage Object Admin, or run: gcloud auth application-default login."
                ) from error
            except TRANSIENT as error:
                if attempt == ATTEMPTS:
                    raise
                _wait(path, error, attempt)

    return with_retries  # type: ignore[return-value]


def _wait(path: str, error: tf.errors.OpError, attempt: int) -> None:
    """Waits, about twice as long each time, and prints why."""
    delay = float(os.environ.get("ADAPTER_BERT_RETRY_SECONDS", "1"))
    seconds = min(delay * 2 ** (attempt - 1), MAX_WAIT_SECONDS) * random.uniform(0.75, 1.25)
    print(
        f"{path}: {reason(error)} Trying again in {seconds:.1f} s ({attempt} of {ATTEMPTS - 1}).",
        flush=True,
    )
    time.sleep(seconds)


def reason(error: Exception) -> str:
    """The first line of an error's message; the rest of TensorFlow's is the service's JSON."""
    first = str(getattr(error, "message", error)).strip().split("\n")[0]
    return re.sub(r"^\{\{.*?\}\} ", "", first)[:200]  # Without the place in a graph.
