"""Folders that are there whole or not at all."""

import contextlib
import os
import tempfile
import uuid

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.permissions import require_writable

CONFIG = "adapter_config.json"  # Without it a folder is no adapter directory.
# Folders in an adapter directory, with adapters in them: of a fusion its members, of several tasks
# one for each.
MEMBERS, TASKS = "members", "tasks"
INSIDE = {MEMBERS: ("member", "fusion"), TASKS: ("task", "adapter")}
TEMPORARY = ".tmp-"  # In the name of what is being written, or about to be removed.
ATTEMPTS = 100  # Of several processes that write the same folder, one is last.
# What a rename says when another process put its own folder there first.
IN_BETWEEN = (tf.errors.AlreadyExistsError, tf.errors.FailedPreconditionError)


def require_place(folder):
    """A folder must be none that a link stands for, and what is above it open folders.

    A new folder would take the place of the link alone, or the old one would be emptied behind it;
    nobody can tell which is wanted.

    Raises:
      InputError: else.
    """
    if storage.is_link(folder):
        target = os.path.realpath(folder)
        raise InputError(
            f"{folder!r} is a symbolic link to {target!r} and will not be replaced. Name what it "
            "leads to, or remove the link."
        )
    above = _nearest_above(folder)
    if above and not storage.isdir(above):
        found = "a file" if storage.exists(above) else "a link that leads nowhere"
        raise InputError(
            f"{folder!r} cannot be made: {above!r} is {found}, not a folder. Choose another folder."
        )
    if above:
        require_writable(above)


def require_outside_fusions(folder):
    """A folder must not be inside an adapter directory. Raises `InputError`.

    What is written among the members of a fusion would make the fusion one that is refused, and
    would go with it; so would what is among the tasks of several.
    """
    path = storage.real(folder)
    while path != os.path.dirname(path):
        above, name = os.path.split(path)
        if name in INSIDE and storage.exists(os.path.join(above, CONFIG)):
            part, whole = INSIDE[name]
            raise InputError(
                f"{folder!r} is among the {part}s of the {whole} in {above!r}, where nothing else "
                "can be. Choose another folder."
            )
        path = above


def _nearest_above(folder):
    """What is there of a local path above `folder`; None of a remote one."""
    if storage.is_remote(folder):
        return None
    above = os.path.dirname(os.path.abspath(folder))
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    return above


def is_free(folder):
    """Whether nothing is at `folder`, or an empty folder."""
    if storage.is_link(folder):
        return False
    return not storage.exists(folder) or (storage.isdir(folder) and not storage.listdir(folder))


def require_free(folder):
    """Nothing may be at `folder`, or an empty folder. Raises `InputError`."""
    require_place(folder)
    require_outside_fusions(folder)
    if not is_free(folder):
        raise InputError(
            f"{folder!r} is there already and will not be replaced. Choose another folder, or "
            "remove it first."
        )


@contextlib.contextmanager
def replacing(folder, last, check=require_place):
    """Yields a temporary path beside `folder`, which takes its place when all went well.

    What is at `folder` is moved aside before and removed after that, so that the old or the new
    content is always there under some name. Names are new each time: nobody else's files are
    touched, and two processes do not meet. A remote folder cannot be moved in one step: it is
    filled from a local one, `last` at the end.

    Args:
      folder: path, local or remote.
      last: name of the file without which the folder counts as empty.
      check: raises `InputError` where what is at a path may not be replaced; asked before and after
        the content was written, which may take minutes.

    Raises:
      InputError: when `folder` is a symbolic link, or `check` says so.
    """
    check(folder)
    if storage.is_remote(folder):
        with tempfile.TemporaryDirectory() as place:
            local = os.path.join(place, "folder")
            yield local
            check(folder)
            storage.upload(local, folder, last)
        return
    temporary = _beside(folder)
    try:
        yield temporary
        check(folder)
        _put(temporary, folder)
    finally:
        storage.rmtree(temporary)


def _beside(folder):
    return f"{folder.rstrip('/')}{TEMPORARY}{uuid.uuid4().hex[:12]}"


def _put(temporary, folder):
    for attempt in range(ATTEMPTS):
        aside = _beside(folder)
        require_place(folder)
        with contextlib.suppress(tf.errors.NotFoundError):  # Nothing was there, or no more.
            tf.io.gfile.rename(folder, aside)
        try:
            tf.io.gfile.rename(temporary, folder)
            return
        except IN_BETWEEN:
            if attempt == ATTEMPTS - 1:
                raise
        except tf.errors.OpError:
            if storage.exists(aside):
                tf.io.gfile.rename(aside, folder)
            raise
        finally:
            storage.rmtree(aside)
