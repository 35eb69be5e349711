"""Files, local or in gs://: `tf.io.gfile` with patience for a service that stumbles.

Objects of a store are there whole or not at all, but nothing moves a folder in one step; a local
file is written under a temporary name and renamed. TensorFlow's client tries a request again by
itself, silently and a few times; here the whole operation is tried again, with a line that says so.
"""

import atexit
import contextlib
import hashlib
import os
import pathlib
import shutil
import tempfile
import uuid

import tensorflow as tf

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.retry import is_remote, retried
from adapter_bert_tf.retry import reason as reason  # Said of files, by those who read them.
from adapter_bert_tf.sanitize import is_utf8, preview

# What reading a damaged checkpoint of TensorFlow raises. An index may lead past its end, or to a
# block of so many bytes that no machine has them.
DAMAGED_CHECKPOINT = (tf.errors.OpError, IndexError, MemoryError, ValueError)

glob = retried(tf.io.gfile.glob)
stat = retried(tf.io.gfile.stat)


def path_of(given):
    """A path as text. Raises `InputError` for what is neither text nor an `os.PathLike`."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if isinstance(path, str) and path and "\0" not in path and is_utf8(path):
        return path
    raise InputError(f"A file or folder is named by text or by a path. Received: {preview(given)}")


@retried
def exists(path):
    """Whether there is a file or folder."""
    return is_utf8(path) and tf.io.gfile.exists(path)


@retried
def isdir(path):
    """Whether there is a folder; the client's own answer is also no when a request failed."""
    try:
        return is_utf8(path) and tf.io.gfile.stat(path).is_directory
    except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError):  # Below a file.
        return False


@retried
def listdir(folder):
    """Names of the files and folders in a folder."""
    try:
        return tf.io.gfile.listdir(folder)
    except tf.errors.NotFoundError as error:
        if is_remote(folder) and tf.io.gfile.exists(folder):  # So a request failed.
            raise tf.errors.UnavailableError(None, None, error.message) from error
        raise


def walk(folder):
    """List of (folder, names of folders, names of files), of a folder and all below it.

    Links to folders are named, and not followed: one may lead to a folder above it.
    """
    if not is_remote(folder):
        return list(os.walk(folder))
    names = [name for name in listdir(folder) if name] if isdir(folder) else []
    folders = [name.rstrip("/") for name in names if name.endswith("/")]
    files = [name for name in names if not name.endswith("/")]
    below = [place for name in folders for place in walk(os.path.join(folder, name))]
    return [(folder, folders, files), *below]


def makedirs(folder):
    """Makes a folder; a store has none. (In a missing bucket the client would try for ever.)"""
    if not is_remote(folder):
        tf.io.gfile.makedirs(folder)


@retried
def remove(path):
    """Removes a file; one that is not there, too, after an answer that was lost."""
    try:
        tf.io.gfile.remove(path)
    except tf.errors.NotFoundError:
        if not is_remote(path):
            raise


def is_link(path):
    """Whether the last part of a path is a symbolic link; its folders may be links."""
    return not is_remote(path) and os.path.islink(_without_end(path))


def _without_end(path):
    """A path without the `/` and `/.` at its end, which stand for what a link leads to."""
    while len(path) > 1 and path.endswith(("/", "/.")):
        path = path[: path.rindex("/")]
    return path


def real(path):
    """A path by which two names of one place are known: links followed, remote ones as text."""
    if not is_remote(path):
        return os.path.realpath(path)
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{os.path.normpath(rest)}"


def rmtree(folder):
    """Removes a folder with all that is in it, if it is there; of a link only the link itself."""
    if is_remote(folder):  # One by one: the client's own way gives up at the first failure.
        for place, _, names in walk(folder):
            for name in names:
                remove(os.path.join(place, name))
    elif is_link(folder):
        os.unlink(_without_end(folder))
    elif os.path.lexists(folder):
        shutil.rmtree(folder)  # TensorFlow's own empties what links in the folder lead to.


@retried
def read_bytes(path, limit=-1):
    """Content of a file, or its first `limit` bytes."""
    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read(limit)


def read_text(path):
    """Content of a UTF-8 file."""
    return read_bytes(path).decode("utf-8")


@retried
def write_bytes(path, content):
    """Writes a file whole or not at all; makes its folder."""
    if is_remote(path):
        with tf.io.gfile.GFile(path, "wb") as file:
            file.write(content)
        return
    tf.io.gfile.makedirs(os.path.dirname(path) or ".")
    temporary = f"{path}.{uuid.uuid4().hex[:8]}.tmp"
    pathlib.Path(temporary).write_bytes(content)
    os.replace(temporary, path)


def write_text(path, text):
    """Writes a UTF-8 file whole or not at all; makes its folder."""
    write_bytes(path, text.encode("utf-8"))


def copy(source, target):
    """Copies a file; what is there is replaced."""
    write_bytes(target, read_bytes(source))


def copy_files(source, folder):
    """Copies the files of a folder, which has no folders in it, in the order of their names."""
    for name in sorted(listdir(source)):
        copy(os.path.join(source, name), os.path.join(folder, name))


def working_folder(folder):
    """A local folder to prepare a folder's files in: itself, or one that goes with the process."""
    if not is_remote(folder):
        return folder
    local = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, local, ignore_errors=True)
    return local


@contextlib.contextmanager
def local_folder(folder):
    """Yields a local folder whose files are in `folder` in the end: itself, if it is local."""
    if not is_remote(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory() as local:
        yield local
        copy_files(local, folder)


def upload(source, folder, last):
    """Puts a local folder's files in a remote folder, so that nobody takes a half for the whole.

    Args:
      source: local folder.
      folder: remote folder; other files in it are removed.
      last: name of the file without which the folder counts as empty: it goes first and comes last.
    """
    names = [
        str(path.relative_to(source))
        for path in sorted(pathlib.Path(source).rglob("*"))
        if path.is_file()
    ]
    remove(os.path.join(folder, last))
    for place, _, files in walk(folder):
        for path in (os.path.join(place, name) for name in files):
            if os.path.relpath(path, folder) not in names:
                remove(path)
    for name in sorted(names, key=lambda name: name == last):
        copy(os.path.join(source, name), os.path.join(folder, name))


def cached(*paths):
    """Local paths with the content of files: their own, or copies that are kept between runs.

    Reading a checkpoint makes thousands of small requests, and every epoch reads all records.

    Args:
      *paths: of files in one folder; copies are in one folder too, under the same names.
    """
    if not is_remote(paths[0]):
        return list(paths)
    found = [(path, stat(path)) for path in paths]
    versions = "".join(f"{path} {about.length} {about.mtime_nsec}\n" for path, about in found)
    folder = cache_folder() / hashlib.sha256(versions.encode()).hexdigest()[:24]
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        local = folder / os.path.basename(path)
        if not local.exists():
            temporary = f"{local}.{uuid.uuid4().hex[:8]}.tmp"
            _download(path, temporary)
            os.replace(temporary, local)
    return [str(folder / os.path.basename(path)) for path in paths]


@retried
def _download(path, local):
    with tf.io.gfile.GFile(path, "rb") as source, open(local, "wb") as target:
        shutil.copyfileobj(source, target, 2**24)


def cache_folder():
    """Where copies of remote files are kept: `ADAPTER_BERT_CACHE`, or the user's cache folder."""
    default = os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "adapter_bert_tf")
    return pathlib.Path(os.environ.get("ADAPTER_BERT_CACHE", default)).expanduser()
