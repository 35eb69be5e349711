"""Whose files `--output_dir` holds: what is taken up again, what is refused, what is removed."""

import json
import os
import re

from adapter_bert_tf import storage
from adapter_bert_tf.command import table
from adapter_bert_tf.command.roles import Role
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.outputs import read_json, remove
from adapter_bert_tf.store.directory import adapter_exists, adapter_is_whole
from adapter_bert_tf.store.folders import TEMPORARY
from adapter_bert_tf.training.checkpoints import PREFIX, STATE

# What a run leaves behind; `--overwrite` removes these and nothing else.
RUN_FILES = (
    "eval_results.txt",
    "metrics.jsonl",
    "run.json",
    "sweep.json",
    "sweep.csv",
    "events.out.tfevents.*",
)
OWNER = "flags.json"
MADE_OF = "made of"  # What the training read, among the owner's flags.
LEFT = re.compile(r".*\.[0-9a-f]{8}\.tmp|\.lock\.[0-9a-f]{32}")  # By a killed process.


def content(data, base, adapter):
    """What a run is made of besides its flags, as `run.json` says it.

    Args:
      data: with `record()`.
      base: `Base`.
      adapter: `AdapterConfig` or None.
    """
    made_of = data.record() | {
        "base": base.fingerprint(),
        "adapter": adapter.to_dict() if adapter else None,
    }
    return json.loads(json.dumps(made_of))  # As it is when it is read.


def _read_in_training(made_of):
    return {
        "training data": made_of["data_sha256"]["train"],
        "base": made_of["base"],
        "adapter": made_of["adapter"],
    }


def claim(flags, made_of):
    """Notes in `--output_dir` which run its checkpoints belong to, and that it is not finished."""
    owner = identity(flags.values) | {MADE_OF: _read_in_training(made_of)}
    remove(flags.output_dir, ["run.json"])
    storage.write_text(_owner_path(flags), json.dumps(owner, indent=2))


def check_same_content(flags, made_of):
    """Checkpoints in `--output_dir` must be made of the same. Raises `InputError`."""
    owner = _owner(flags) if flags.do_train and not flags.overwrite else None
    if owner is None:
        return
    theirs = owner.get(MADE_OF, {})
    different = [
        name for name, value in _read_in_training(made_of).items() if theirs.get(name) != value
    ]
    if different:
        raise InputError(
            f"{flags.output_dir} holds the checkpoints of a run whose "
            f"{' and '.join(different)} had another content. Choose another "
            "--output_dir, or use --overwrite."
        )


def _owner(flags):
    """What `claim` noted, or None."""
    if not storage.exists(_owner_path(flags)):
        return None
    try:
        return json.loads(storage.read_text(_owner_path(flags)))
    except json.JSONDecodeError as error:
        raise InputError(f"{_owner_path(flags)} is damaged: {error}. Use --overwrite.") from error


def is_finished(flags, made_of):
    """Whether `--output_dir` holds the whole result of these very flags and this very content.

    Args:
      flags: `RunFlags`.
      made_of: function without arguments that returns the `content`.
    """
    record = read_json(os.path.join(flags.output_dir, "run.json"))
    results = os.path.join(flags.output_dir, "eval_results.txt")
    if (
        not record
        or not adapter_is_whole(adapter_dir(flags))
        or (flags.do_eval and not storage.exists(results))
    ):
        return False
    theirs = flags.completed(record.get("flags", {}))
    asked = [name for name in table.with_role(Role.APPLY, Role.EXPORT) if getattr(flags, name)]
    same = identity(flags.values) == identity(theirs) and all(theirs.get(name) for name in asked)
    return same and all(
        record.get(name) == made_of()[name] for name in ("data_sha256", "base", "adapter")
    )


def interrupted(flags, made_of):
    """Whether `--output_dir` holds this very run, begun and not finished.

    Then even `--overwrite` goes on with it: who restarts a preempted command wants no other.
    """
    begun = storage.exists(_owner_path(flags))
    finished = storage.exists(os.path.join(flags.output_dir, "run.json"))
    return begun and not finished and resumes(flags.changed(overwrite=False), made_of)


def resumes(flags, made_of):
    """Whether a run with this `content` can go on from `--output_dir`, or begin there."""
    try:
        check_same_run(flags)
        check_same_content(flags, made_of)
    except InputError:
        return False
    return True


def check_same_run(flags):
    """Checkpoints in `--output_dir` must be of a run with the same flags. Raises `InputError`.

    So must the adapter be that is there, which is the case if there are checkpoints as well.
    """
    owner = _owner(flags)
    if owner is None and adapter_exists(adapter_dir(flags)):
        raise InputError(
            f"{adapter_dir(flags)} already holds an adapter of another run. Choose "
            "another --output_dir, or replace it with --overwrite."
        )
    if owner is None and _checkpoint_files(flags.output_dir):
        raise InputError(
            f"{os.path.dirname(_owner_path(flags))} holds checkpoints, and nothing "
            f"says of which run: there is no {OWNER}. Choose another --output_dir, or "
            "remove them with --overwrite."
        )
    if owner is None:
        return
    theirs = flags.completed(owner)
    different = [
        f"--{name}: {theirs[name]!r} there, {value!r} here"
        for name, value in identity(flags.values, table.ONLY_RESULTS).items()
        if theirs[name] != value
    ]
    if different:
        raise InputError(
            f"{flags.output_dir} holds the checkpoints of another run: "
            f"{'; '.join(different)}. Use its flags to take it up again, another "
            "--output_dir, or --overwrite."
        )


def adapter_dir(flags):
    """Where the adapter is written or read."""
    return flags.adapter_dir or os.path.join(flags.output_dir, "adapter")


def export_dir(flags):
    """Where the SavedModel is written."""
    return flags.export_dir or os.path.join(flags.output_dir, "saved_model")


def _owner_path(flags):
    return os.path.join(flags.output_dir, "checkpoints", OWNER)


def identity(values, without=()):
    """The flags, of a dict of all, that make a run and its results what they are."""
    free = (*table.FREE, *without)
    return {
        name: value.rstrip("/") or value if isinstance(value, str) else value
        for name, value in values.items()
        if name not in free
    }


def clear(folder, patterns):
    """Removes what an earlier run left in `folder`, and files of the task's own `patterns`.

    Checkpoints go first, then whose they are: killed at any point, it is done again.
    """
    for path in [*_checkpoint_files(folder), os.path.join(folder, "checkpoints", OWNER)]:
        if storage.exists(path):
            storage.remove(path)
    if adapter_exists(os.path.join(folder, "adapter")):  # Ours, not a user's folder.
        storage.rmtree(os.path.join(folder, "adapter"))
    remove(folder, (*RUN_FILES, *patterns))


def _checkpoint_files(folder):
    """Paths of TensorFlow's files in `checkpoints/`."""
    place = os.path.join(folder, "checkpoints")
    names = storage.listdir(place) if storage.isdir(place) else []
    return [
        os.path.join(place, name)
        for name in sorted(names)
        if name == STATE or name.startswith((PREFIX, f"{STATE}.tmp"))
    ]


def remove_leftovers(flags):
    """Removes what a killed process had begun to write in `--output_dir`, which is locked."""
    for folder in (flags.output_dir, os.path.join(flags.output_dir, "checkpoints")):
        for name in storage.listdir(folder) if storage.isdir(folder) else []:
            path = os.path.join(folder, name.rstrip("/"))
            if name.startswith(("adapter" + TEMPORARY, "saved_model" + TEMPORARY)):
                storage.rmtree(path)
            elif LEFT.fullmatch(name):
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
