"""Checks of paths and buckets before anything expensive starts; all raise `InputError`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Sequence

from adapter_bert_tf import storage
from adapter_bert_tf.base.files import require_checkpoint, require_no_training
from adapter_bert_tf.config import settings
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.config.task_list import paths_in
from adapter_bert_tf.data.file_sets import fixed_part, split_paths
from adapter_bert_tf.errors import InputError, NotFound, Unavailable
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.permissions import denied, require_open
from adapter_bert_tf.store.directory import parse_named_folders
from adapter_bert_tf.store.files import read_adapter_config

PLACEHOLDER = "YOUR_"  # In gcs_configs/.
# Settings whose paths must exist. Those of bases may also be prefixes or names.
_LOCAL_INPUTS = tuple(
    name
    for name in settings.paths_read(training=True)
    if name not in ("base_model", "init_checkpoint")
)


def check(config: RunConfig) -> None:
    """Checks the paths of a configuration, without reading local ones."""
    training, device = config.actions.do_train, config.device
    read, written = settings.paths_read(training), settings.paths_written(training)
    paths = [
        (name, path)
        for name in (*read, *written)
        if (value := config.values.get(name))
        for path in paths_of(config.command, name, str(value))
    ]
    paths += [("task_name", path) for path in paths_in(config.data.task_name, config.command)]
    _check_filled_in([*paths, ("tpu_name", device.tpu_name)])
    if device.strategy == "tpu":
        _check_remote(config, paths)
        from adapter_bert_tf.training.device.strategy import tpu_runtime

        runtime = tpu_runtime(device.tpu_name, device.tpu_zone, device.gcp_project)
        tpu = device.tpu_name or "of the environment"
        print(f"tensorflow {tf.__version__}; TPU {tpu}: {runtime}", flush=True)
    for name, path in paths:
        if name in (*read, "task_name") and storage.is_remote(path):
            _check_readable(name, path)
    for name, path in paths:
        if name in written and not config.actions.dry_run:
            check_writable(f"--{name}={path}", path)


def check_found(config: RunConfig, applies: bool = True) -> None:
    """Requires the local files and folders that a command reads, without TensorFlow.

    Other errors in them are found when they are read.

    Args:
      config: of the command.
      applies: whether the adapter is read if the command does not train.
    """
    if config.device.strategy == "tpu":  # `check` explains that its paths must be remote.
        return
    paths = [
        (name, path)
        for name in _LOCAL_INPUTS
        if (value := config.values.get(name)) and not _is_created_later(config, name)
        for path in paths_of(config.command, name, str(value))
    ]
    for name, path in paths:
        if not storage.is_remote(path):
            require_open(path)
            if not storage.exists(path):
                raise NotFound(f"--{name}={config.values[name]}: there is no {path!r}.")
    base = config.base
    if base.init_checkpoint and not storage.is_remote(base.init_checkpoint):
        require_checkpoint(base.init_checkpoint)
    if base.base_model and not storage.is_remote(base.base_model):
        require_no_training(base.base_model)
    output = config.output
    from_checkpoint = config.base.init_checkpoint and not output.adapter_dir
    if applies and not config.actions.do_train and not from_checkpoint:
        read_adapter_config(output.adapter_folder)


def _is_created_later(config: RunConfig, name: str) -> bool:
    """Whether TensorFlow Datasets makes a folder."""
    return name == "data_dir" and config.data.data_source == "tfds"


def paths_of(command: Command, name: str, value: str) -> list[str]:
    """Returns the paths in the value of a setting; of a pattern the folder that it is in."""
    row = settings.BY_NAME[name]
    if command in row.patterns:
        return [fixed_part(path) for path in split_paths(value)]
    return [path for _, path in parse_named_folders(value)] if row.several else [value]


def _check_filled_in(values: Sequence[tuple[str, str | None]]) -> None:
    left = [f"--{name}={value}" for name, value in values if PLACEHOLDER in (value or "")]
    if left:
        raise InputError(
            f"Replace {PLACEHOLDER}... by the names of your own bucket and TPU: {' '.join(left)}"
        )


def _check_remote(config: RunConfig, paths: Collection[tuple[str, str]]) -> None:
    """Requires remote paths for a TPU, unless it is in this machine."""
    if config.device.tpu_name == "local":
        return
    local = [f"--{name}={path}" for name, path in paths if not storage.is_remote(path)]
    named = {name for name, _ in paths}
    if config.data.task_name and not named & {"data_dir", "task_name"}:
        local.append("--data_dir (not given: the data that ships with the package is local)")
    if not named & {"base_model", "init_checkpoint", "vocab_file"}:
        local.append("--base_model (not given: the default base is an installed package)")
    if local:
        raise InputError(
            "A TPU's host cannot read this machine's files: every path must be in a bucket "
            f"(gs://). Local: {'; '.join(local)}. Copy them with `gsutil cp -r`, or on a TPU VM "
            "use --tpu_name=local."
        )


def _check_readable(name: str, path: str) -> None:
    try:
        exists = storage.exists(path) or storage.glob(f"{path}*")
    except OSError as error:
        raise Unavailable(f"--{name}={path} cannot be read: {storage.reason(error)}") from error
    if not exists:
        raise NotFound(f"--{name}={path} is not there. Check the bucket's name and the path.")


def check_writable(name: str, folder: str) -> None:
    """Writes a probe file in a folder, or in its nearest existing parent."""
    # A unique name, because several workers try at once; the cleanup of killed runs removes it.
    probe = os.path.join(_nearest(folder), f".writable.{uuid.uuid4().hex[:8]}.tmp")
    try:
        storage.write_text(probe, "")
        storage.remove(probe)
    except (OSError, InputError) as error:
        reason = denied(error) or storage.reason(error)
        raise Unavailable(f"{name} cannot be written: {reason}") from error


def _nearest(folder: str) -> str:
    """Returns a folder, or the nearest existing parent of a local one."""
    while not storage.is_remote(folder) and not storage.exists(folder):
        folder = os.path.dirname(os.path.abspath(folder))
    return folder
