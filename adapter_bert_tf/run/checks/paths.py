"""What can be known to fail before anything expensive starts: paths, buckets, batch sizes."""

import os
import uuid

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.config import table
from adapter_bert_tf.config.task_list import folders
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.permissions import denied
from adapter_bert_tf.store.directory import parse_named_folders
from adapter_bert_tf.training.strategy import tpu_runtime

PLACEHOLDER = "YOUR_"  # In gcs_configs/.


def check(flags):
    """Checks the flags' paths, without reading local ones. Raises `InputError`."""
    read, written = table.paths_read(flags.do_train), table.paths_written(flags.do_train)
    paths = [
        (name, path)
        for name in (*read, *written)
        if (value := flags.values.get(name))
        for path in paths_of(name, value)
    ]
    paths += [("task_name", path) for path in folders(getattr(flags, "task_name", None))]
    _check_filled_in([*paths, ("tpu_name", flags.tpu_name)])
    if flags.use_tpu or flags.distribution == "tpu":
        _check_remote(flags, paths)
        runtime = tpu_runtime(flags.tpu_name, flags.tpu_zone, flags.gcp_project)
        print(
            f"tensorflow {tf.__version__}; TPU {flags.tpu_name or 'of the environment'}: {runtime}",
            flush=True,
        )
    for name, path in paths:
        if name in (*read, "task_name") and storage.is_remote(path):
            _check_readable(name, path)
    for name, path in paths:
        if name in written and not flags.dry_run:
            check_writable(f"--{name}={path}", path)


def paths_of(name, value):
    """The paths that a flag names."""
    return (
        [path for _, path in parse_named_folders(value)] if table.row_of(name).several else [value]
    )


def _check_filled_in(values):
    left = [f"--{name}={value}" for name, value in values if PLACEHOLDER in (value or "")]
    if left:
        raise InputError(
            f"Put the names of your own bucket and TPU for {PLACEHOLDER}...: {' '.join(left)}"
        )


def _check_remote(flags, paths):
    """A TPU reads and writes by itself, and has no disk of ours; one in this machine has."""
    if flags.tpu_name == "local":
        return
    local = [f"--{name}={path}" for name, path in paths if not storage.is_remote(path)]
    named = {name for name, _ in paths}
    if flags.values.get("task_name") and not named & {"data_dir", "task_name"}:
        local.append("--data_dir (not given: the data that ships with the package is local)")
    if not named & {"base_model", "init_checkpoint", "vocab_file"}:
        local.append("--base_model (not given: the default base is an installed package)")
    if local:
        raise InputError(
            "With a TPU every path must be in a bucket (gs://), because the TPU's "
            f"host cannot see this machine's files. Not so: {'; '.join(local)}. Copy "
            "them with `gsutil cp -r`. On a TPU VM use --tpu_name=local."
        )


def _check_readable(name, path):
    try:
        there = storage.exists(path) or storage.glob(f"{path}*")
    except tf.errors.OpError as error:
        raise InputError(f"--{name}={path} cannot be read: {storage.reason(error)}") from error
    if not there:
        raise InputError(
            f"--{name}={path} is not there. Is the bucket's name right, and the path complete?"
        )


def check_writable(name, folder):
    """Tries to write a file in a folder, or above one that is not there. Raises `InputError`."""
    # Its own name, because several workers try at once; that of what a killed run leaves.
    probe = os.path.join(_nearest(folder), f".writable.{uuid.uuid4().hex[:8]}.tmp")
    try:
        storage.write_text(probe, "")
        storage.remove(probe)
    except tf.errors.OpError as error:
        said = denied(error) or storage.reason(error)
        raise InputError(f"{name} cannot be written: {said}") from error
    except (OSError, InputError) as error:
        raise InputError(f"{name} cannot be written: {denied(error) or error}") from error


def _nearest(folder):
    """A folder, or, if it is a local one, what is there of its path."""
    while not storage.is_remote(folder) and not storage.exists(folder):
        folder = os.path.dirname(os.path.abspath(folder))
    return folder
