"""Whose files `--output_dir` holds: what is taken up again, what is refused, what is removed."""

import json
import os
import re

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.outputs import read_json, remove
from adapter_bert_tf.store.directory import adapter_exists
from adapter_bert_tf.store.folders import TEMPORARY
from adapter_bert_tf.training.checkpoints import PREFIX, STATE

# What a run leaves behind; `--overwrite` removes these and nothing else.
RUN_FILES = ("eval_results.txt", "metrics.jsonl", "run.json", "sweep.json", "sweep.csv",
             "events.out.tfevents.*")
OWNER = "flags.json"
TRAINED_ON = "training data"  # Its digest, among the owner's flags.
# Flags that may differ when an interrupted run is taken up again.
FREE_FLAGS = ("output_dir", "do_eval", "do_predict", "do_export", "export_dir",
              "eval_batch_size", "predict_batch_size", "overwrite", "config", "dry_run",
              "save_checkpoints_steps", "iterations_per_loop", "verbose_logging", "features_dir",
              "question", "context")
# And those that change nothing but the results.
EVALUATION_FLAGS = ("predict_file", "n_best_size", "max_answer_length", "null_score_diff_threshold")


def claim(flags, record):
    """Notes in `--output_dir` which run, on which data, its checkpoints belong to."""
    owner = identity(flags.values) | {TRAINED_ON: record["data_sha256"]["train"]}
    storage.write_text(_owner_path(flags), json.dumps(owner, indent=2))


def check_same_data(flags, record):
    """Checkpoints in `--output_dir` must be of the same data. Raises `InputError`."""
    owner = _owner(flags) if flags.do_train and not flags.overwrite else None
    if owner and owner.get(TRAINED_ON) != record["data_sha256"]["train"]:
        raise InputError(f"{flags.output_dir} holds the checkpoints of a run on other training "
                         "data. Choose another --output_dir, or use --overwrite.")


def _owner(flags):
    """What `claim` noted, or None."""
    if not storage.exists(_owner_path(flags)):
        return None
    try:
        return json.loads(storage.read_text(_owner_path(flags)))
    except json.JSONDecodeError as error:
        raise InputError(f"{_owner_path(flags)} is damaged: {error}. Use --overwrite.") from error


def is_finished(flags, data):
    """Whether `--output_dir` holds the whole result of these very flags on this very data.

    Args:
      flags: `RunFlags`.
      data: function without arguments that returns what `run.json` says of the data.
    """
    record = read_json(os.path.join(flags.output_dir, "run.json"))
    if not record or not adapter_exists(adapter_dir(flags)):
        return False
    theirs = record.get("flags", {})
    asked = [name for name in ("do_eval", "do_predict", "do_export") if getattr(flags, name)]
    same = identity(flags.values) == identity(theirs) and all(theirs.get(name) for name in asked)
    return same and record["data_sha256"] == data()["data_sha256"]


def interrupted(flags, record):
    """Whether `--output_dir` holds this very run, begun and not finished.

    Then even `--overwrite` goes on with it: who restarts a preempted command wants no other.
    """
    begun = storage.exists(_owner_path(flags))
    finished = storage.exists(os.path.join(flags.output_dir, "run.json"))
    return begun and not finished and resumes(flags.changed(overwrite=False), record)


def resumes(flags, record):
    """Whether a run can go on from what `--output_dir` holds, or begin there.

    Args:
      flags: `RunFlags`.
      record: what `run.json` says of the data.
    """
    try:
        check_same_run(flags)
        check_same_data(flags, record)
    except InputError:
        return False
    return True


def check_same_run(flags):
    """Checkpoints in `--output_dir` must be of a run with the same flags. Raises `InputError`.

    So must the adapter be that is there, which is the case if there are checkpoints as well.
    """
    owner = _owner(flags)
    if owner is None and adapter_exists(adapter_dir(flags)):
        raise InputError(f"{adapter_dir(flags)} already holds an adapter of another run. Choose "
                         "another --output_dir, or replace it with --overwrite.")
    if owner is None and _checkpoint_files(flags.output_dir):
        raise InputError(f"{os.path.dirname(_owner_path(flags))} holds checkpoints, and nothing "
                         f"says of which run: there is no {OWNER}. Choose another --output_dir, or "
                         "remove them with --overwrite.")
    if owner is None:
        return
    different = [f"--{name}: {owner.get(name)!r} there, {value!r} here"
                 for name, value in identity(flags.values, EVALUATION_FLAGS).items()
                 if owner.get(name) != value]
    if different:
        raise InputError(f"{flags.output_dir} holds the checkpoints of another run: "
                         f"{'; '.join(different)}. Use its flags to take it up again, another "
                         "--output_dir, or --overwrite.")


def adapter_dir(flags):
    """Where the adapter is written or read."""
    return flags.adapter_dir or os.path.join(flags.output_dir, "adapter")


def _owner_path(flags):
    return os.path.join(flags.output_dir, "checkpoints", OWNER)


def identity(values, without=()):
    """The flags, of a dict of all, that make a run and its results what they are."""
    free = (*FREE_FLAGS, *without)
    return {name: value for name, value in values.items() if name not in free}


def clear(folder, patterns):
    """Removes what an earlier run left in `folder`, and files of the task's own `patterns`."""
    remove(folder, (*RUN_FILES, *patterns))
    if adapter_exists(os.path.join(folder, "adapter")):  # Ours, not a user's folder.
        storage.rmtree(os.path.join(folder, "adapter"))
    for path in [*_checkpoint_files(folder), os.path.join(folder, "checkpoints", OWNER)]:
        if storage.exists(path):  # Whose they are goes last.
            storage.remove(path)


def _checkpoint_files(folder):
    """Paths of TensorFlow's files in `checkpoints/`."""
    place = os.path.join(folder, "checkpoints")
    names = storage.listdir(place) if storage.isdir(place) else []
    return [os.path.join(place, name) for name in sorted(names)
            if name == STATE or name.startswith((PREFIX, f"{STATE}.tmp"))]


def remove_leftovers(flags):
    """Removes what a killed process had begun to write in `--output_dir`, which is locked."""
    for name in storage.listdir(flags.output_dir):
        name = name.rstrip("/")
        path = os.path.join(flags.output_dir, name)
        if name.startswith(("adapter" + TEMPORARY, "saved_model" + TEMPORARY)):
            storage.rmtree(path)
        elif name.endswith(".tmp") and name.startswith(tuple(RUN_FILES[:-1])):
            storage.remove(path)
    paths = [path.rstrip("/") for path in _checkpoint_files(flags.output_dir)]
    for path in paths:
        if _is_half(path, paths):
            (storage.rmtree if storage.isdir(path) else storage.remove)(path)


def _is_half(path, paths):
    """Whether TensorFlow had not finished a path among those of the checkpoints."""
    folder, name = os.path.split(path)
    number = re.match(rf"{PREFIX}\d+", name)
    without_index = number and os.path.join(folder, f"{number[0]}.index") not in paths
    return bool(without_index or name.endswith("_temp") or name.startswith(f"{STATE}.tmp"))
