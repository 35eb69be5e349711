"""Retries of remote file operations, with backoff and a printed reason."""

from __future__ import annotations

import errno
import functools
import os
import random
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from adapter_bert_tf.errors import Unavailable, Unsupported
from adapter_bert_tf.lazy import tf

# TensorFlow's client reads these once: it tries each request three times, and caches no stats,
# because another process may have written since.
os.environ.setdefault("GCS_RETRY_CONFIG_MAX_RETRIES", "2")
os.environ.setdefault("GCS_RETRY_CONFIG_INIT_DELAY_TIME_US", "500000")
os.environ.setdefault("GCS_STAT_CACHE_MAX_AGE", "0")
# Of each open file; 64 by default, which is what the beginnings of many files would take, too.
os.environ.setdefault("GCS_READ_CACHE_BLOCK_SIZE_MB", "8")

# What 429, 5xx and lost connections become after the client's own retries.
TRANSIENT = (
    "AbortedError",
    "UnavailableError",
    "DeadlineExceededError",
    "InternalError",
    "UnknownError",
)
# Other errors as local files have them.
OS_ERRORS = {"NotFoundError": errno.ENOENT, "AlreadyExistsError": errno.EEXIST}
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
      OSError: for other errors, such as a missing path (`FileNotFoundError`).
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
            except tf.errors.OpError as error:
                name = type(error).__name__
                if name not in TRANSIENT or attempt == ATTEMPTS:
                    raise OSError(OS_ERRORS.get(name, errno.EIO), reason(error), path) from error
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
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    first = str(getattr(error, "message", error)).strip().split("\n")[0]
    return re.sub(r"^\{\{.*?\}\} ", "", first)[:200]  # Without the place in a graph.
