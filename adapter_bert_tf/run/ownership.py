"""Whose files `--output_dir` holds: what is taken up again, what is refused, what is removed."""

import json
import os

import tensorflow as tf

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.outputs import remove, write_text
from adapter_bert_tf.store.directory import CONFIG

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
    write_text(_owner_path(flags), json.dumps(owner, indent=2))


def check_same_data(flags, record):
    """Checkpoints in `--output_dir` must be of the same data. Raises `InputError`."""
    owner = _owner(flags) if flags.do_train and not flags.overwrite else None
    if owner and owner.get(TRAINED_ON) != record["data_sha256"]["train"]:
        raise InputError(f"{flags.output_dir} holds the checkpoints of a run on other training "
                         "data. Choose another --output_dir, or use --overwrite.")


def _owner(flags):
    """What `claim` noted, or None."""
    if not tf.io.gfile.exists(_owner_path(flags)):
        return None
    try:
        with tf.io.gfile.GFile(_owner_path(flags)) as file:
            return json.load(file)
    except json.JSONDecodeError as error:
        raise InputError(f"{_owner_path(flags)} is damaged: {error}. Use --overwrite.") from error


def check_same_run(flags):
    """Checkpoints in `--output_dir` must be of a run with the same flags. Raises `InputError`."""
    owner = _owner(flags)
    if owner is None:
        return
    different = [f"--{name}: {owner.get(name)!r} there, {value!r} here"
                 for name, value in identity(flags.values, EVALUATION_FLAGS).items()
                 if owner.get(name) != value]
    if different:
        raise InputError(f"{flags.output_dir} holds the checkpoints of another run: "
                         f"{'; '.join(different)}. Use its flags to take it up again, another "
                         "--output_dir, or --overwrite.")


def _owner_path(flags):
    return os.path.join(flags.output_dir, "checkpoints", OWNER)


def identity(values, without=()):
    """The flags, of a dict of all, that make a run and its results what they are."""
    free = (*FREE_FLAGS, *without)
    return {name: value for name, value in values.items() if name not in free}


def clear(folder, patterns):
    """Removes what an earlier run left in `folder`, and files of the task's own `patterns`."""
    remove(folder, (*RUN_FILES, *patterns))
    for name, mark in (("adapter", CONFIG), ("checkpoints", OWNER)):
        if tf.io.gfile.exists(os.path.join(folder, name, mark)):  # Ours, not a user's folder.
            tf.io.gfile.rmtree(os.path.join(folder, name))
