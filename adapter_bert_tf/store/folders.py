"""Folders that are there whole or not at all."""

import contextlib
import uuid

import tensorflow as tf

TEMPORARY = ".tmp-"  # In the name of what is being written, or about to be removed.
ATTEMPTS = 100  # Of several processes that write the same folder, one is last.
# What a rename says when another process put its own folder there first.
IN_BETWEEN = (tf.errors.AlreadyExistsError, tf.errors.FailedPreconditionError)


@contextlib.contextmanager
def replacing(folder):
    """Yields a temporary path beside `folder`, which takes its place when all went well.

    What is at `folder` is moved aside before and removed after that, so that the old or the new
    content is always there under some name. Names are new each time: nobody else's files are
    touched, and two processes do not meet.
    """
    temporary = _beside(folder)
    try:
        yield temporary
        _put(temporary, folder)
    finally:
        _remove(temporary)


def _beside(folder):
    return f"{folder.rstrip('/')}{TEMPORARY}{uuid.uuid4().hex[:12]}"


def _put(temporary, folder):
    for attempt in range(ATTEMPTS):
        aside = _beside(folder)
        with contextlib.suppress(tf.errors.NotFoundError):  # Nothing was there, or no more.
            tf.io.gfile.rename(folder, aside)
        try:
            tf.io.gfile.rename(temporary, folder)
            return
        except IN_BETWEEN:
            if attempt == ATTEMPTS - 1:
                raise
        except tf.errors.OpError:
            if tf.io.gfile.exists(aside):
                tf.io.gfile.rename(aside, folder)
            raise
        finally:
            _remove(aside)


def _remove(folder):
    if tf.io.gfile.exists(folder):
        tf.io.gfile.rmtree(folder)
