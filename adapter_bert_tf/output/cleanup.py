"""What earlier runs and killed processes left in an output folder, and what of it is removed."""

import fnmatch
import os
import re
from collections.abc import Collection

from absl import logging

from adapter_bert_tf import report, storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.run_files import OWNER, RECORDS, WRITTEN, remove
from adapter_bert_tf.store.directory import adapter_exists
from adapter_bert_tf.store.folders import TEMPORARY
from adapter_bert_tf.store.place import require_adapter_place
from adapter_bert_tf.training.best import BestEvaluation
from adapter_bert_tf.training.checkpoints import PREFIX, STATE_FILE

# What a run leaves behind; `--overwrite` removes these, the results, and nothing else.
RUN_FILES = (*WRITTEN, report.FILE, f"events.out.tfevents.{'[0-9]' * 10}.*.v2")
CHECKPOINT = re.compile(rf"{PREFIX}\d+(\.index|\.data-|_temp/?$)")
HALF_FOLDER = re.compile(rf"(adapter|saved_model){re.escape(TEMPORARY)}[0-9a-f]{{12}}")
LEFT = re.compile(r"(.*)\.[0-9a-f]{8}\.tmp|(\.lock)\.[0-9a-f]{32}")  # By a killed process.
# Of every command: the lock, and the file by which it sees that it may write.
ALWAYS = (".lock", ".writable", ".writable.*.tmp")
IN_CHECKPOINTS = (OWNER, "best.json", "best-*.safetensors", STATE_FILE)


def clear_run(folder: str, patterns: Collection[str]) -> None:
    """Removes what an earlier run left in `folder`, and files of the task's own `patterns`.

    Checkpoints go first, and what says whose the rest is goes last: killed at any point, it is done
    again, and never looks like an interrupted run, which has an owner and no record.
    """
    recorded = any(storage.exists(os.path.join(folder, name)) for name in RECORDS)
    BestEvaluation.clean(os.path.join(folder, "checkpoints"), None)
    for path in checkpoint_files(folder):
        if storage.exists(path) and not storage.isdir(path):
            storage.remove(path)
    if recorded:
        remove(os.path.join(folder, "checkpoints"), [OWNER])
    if adapter_exists(os.path.join(folder, "adapter")):
        _remove_adapter(os.path.join(folder, "adapter"))
    page = os.path.join(folder, report.FILE)
    foreign = storage.exists(page) and not storage.isdir(page) and not report.is_report(page)
    remove(folder, {*RUN_FILES, *patterns} - {*RECORDS} - ({report.FILE} if foreign else set()))
    for name in RECORDS:
        remove(folder, [name])
    remove(os.path.join(folder, "checkpoints"), [OWNER])


def _remove_adapter(folder: str) -> None:
    """Removes an adapter directory, if it is ours and nothing else is in it."""
    try:
        require_adapter_place(folder)
    except InputError as error:
        logging.warning("What is in %s stays. %s", folder, error)
        return
    storage.rmtree(folder)


def checkpoint_files(folder: str) -> list[str]:
    """Paths of TensorFlow's files in `checkpoints/`."""
    place = os.path.join(folder, "checkpoints")
    names = storage.listdir(place) if storage.isdir(place) else []
    return [
        os.path.join(place, name)
        for name in sorted(names)
        if name == STATE_FILE or name.startswith(f"{STATE_FILE}.tmp") or CHECKPOINT.match(name)
    ]


def remove_stale_files(output_dir: str, patterns: Collection[str]) -> None:
    """Removes what a killed process had begun to write in a folder that is locked.

    Args:
      output_dir: the folder.
      patterns: of the files that this command writes in it, besides `RUN_FILES`.
    """
    places = {"": (*ALWAYS, *RUN_FILES, *patterns), "checkpoints": IN_CHECKPOINTS}
    for below, written in places.items():
        folder = os.path.join(output_dir, below) if below else output_dir
        for name in storage.listdir(folder) if storage.isdir(folder) else []:
            path = os.path.join(folder, name.rstrip("/"))
            if HALF_FOLDER.fullmatch(name.rstrip("/")):
                if storage.isdir(path):  # A file of this name is not of our making.
                    storage.rmtree(path)
            elif _is_left(name, written) and not storage.isdir(path):
                storage.remove(path)
    paths = [path.rstrip("/") for path in checkpoint_files(output_dir)]
    for path in paths:
        if _is_half(path, paths):
            (storage.rmtree if storage.isdir(path) else storage.remove)(path)


def _is_left(name: str, written: Collection[str]) -> bool:
    """Whether a name is what one of the files that are written is called before it is whole."""
    found = LEFT.fullmatch(name)
    whole = (found[1] or found[2]) if found else ""
    return any(fnmatch.fnmatchcase(whole, pattern) for pattern in written)


def _is_half(path: str, paths: Collection[str]) -> bool:
    """Whether TensorFlow had not finished a path among those of the checkpoints."""
    folder, name = os.path.split(path)
    number = re.match(rf"{PREFIX}\d+", name)
    without_index = number and os.path.join(folder, f"{number[0]}.index") not in paths
    return bool(without_index or name.endswith("_temp") or name.startswith(f"{STATE_FILE}.tmp"))
