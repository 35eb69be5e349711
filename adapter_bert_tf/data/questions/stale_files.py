"""Records that a killed process had begun to write, and how they are known."""

import contextlib
import fcntl
import os
import re
import time

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError

OLD = 3600.0  # Seconds. Who writes where there are no locks writes for less.
WRITING = ".writing"
# Another process did it, or this one may only read here.
NOT_REMOVED = (tf.errors.NotFoundError, tf.errors.PermissionDeniedError, InputError)
SHARD = re.compile(r"([0-9a-f]{8})-\d\d\.tfrecord")
HALF = re.compile(r"done\.json\.[0-9a-f]{8}\.tmp")


@contextlib.contextmanager
def writing(folder, name):
    """A context in which this process writes the records `name` in a folder, and is seen to.

    The sign is a file that it holds locked: the lock goes with the process, however that ends.
    """
    if storage.is_remote(folder):
        yield
        return
    path = os.path.join(folder, name + WRITING)
    with open(path, "w", encoding="utf-8") as file:
        with contextlib.suppress(OSError):  # Not every file system has locks.
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)


def remove(folder, name):
    """Removes from a folder what processes left that are gone, but not the records `name`.

    What has no sign may be another run's that wrote at the same time and reads it now: it goes when
    it is old.
    """
    names = storage.listdir(folder)
    signs = [other for other in names if other.endswith(WRITING)]
    dead = {other for other in signs if _is_dead(os.path.join(folder, other))}
    for other in sorted(names, key=lambda other: other in signs):  # Signs last.
        path, shard = os.path.join(folder, other), SHARD.fullmatch(other)
        gone = other in dead
        if shard and shard[1] != name:
            gone = shard[1] + WRITING in dead or _is_old(path)
        if HALF.fullmatch(other):
            gone = len(dead) == len(signs) or _is_old(path)
        if gone:
            with contextlib.suppress(*NOT_REMOVED):
                storage.remove(path)


def _is_old(path):
    try:
        return time.time() - storage.stat(path).mtime_nsec / 1e9 > OLD
    except tf.errors.NotFoundError:
        return False


def _is_dead(path):
    """Whether no process holds the lock of a sign."""
    try:
        with open(path, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except OSError:
        return False
