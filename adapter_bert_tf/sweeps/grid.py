"""Which runs a sweep consists of: settings times seeds, each with a folder of its own."""

import collections
import itertools
import json
import math
import os
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.config import table
from adapter_bert_tf.config.config_file import read_yaml, text_of
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.run.fingerprint import decisive
from adapter_bert_tf.sanitize import preview, printable

# Houlsby et al. 2019, section 3.1.
PAPER = {"learning_rate": [3e-5, 3e-4, 3e-3], "num_train_epochs": [3, 20]}
RECORD = "sweep.json"
MOST_RUNS = 10_000
LONGEST_NAME = 240  # Bytes of a folder's name; file systems take 255.


def read_grid(flags):
    """Dict from flag to its list of values. Raises `InputError`."""
    if not (flags.do_train and flags.do_eval):
        raise InputError(
            "--num_trials, --folds and --sweep need --do_train and --do_eval: the best run is "
            "chosen on dev."
        )
    if not flags.output_dir:
        raise InputError("--output_dir is missing: the folder for the runs.")
    if folds_of(flags):
        _check_only_measured(flags)
    if not flags.sweep:
        return {}
    grid: dict[str, Any] = PAPER if flags.sweep == "paper" else read_yaml(flags.sweep, "--sweep")
    if isinstance(grid.get("grid"), dict):  # A sweep.json.
        grid = grid["grid"]
    grid = {
        str(name): values if isinstance(values, list) else [values] for name, values in grid.items()
    }
    for values in grid.values():
        for value in values:
            _check_value(flags.sweep, value)
    empty = [name for name, values in grid.items() if not values]
    if empty or not grid:
        raise InputError(
            f"--sweep={flags.sweep} must hold `flag: [values]` lines. "
            + (f"There are no values of {preview(empty)}." if empty else "It is empty.")
        )
    fixed = [name for name in grid if name in table.NOT_SWEPT]
    if fixed:
        raise InputError(
            f"--sweep={flags.sweep} cannot vary {', '.join(fixed)}. For seeds use --num_trials."
        )
    unknown = sorted(name for name in grid if name not in flags.definitions)
    if unknown:
        raise InputError(f"--sweep={flags.sweep}: unknown flags {preview(unknown)}.")
    return grid


def folds_of(flags):
    """Numbers of the folds that a command runs: all of `--folds`; none, or with `--fold` none."""
    folds = getattr(flags, "folds", None)
    return range(folds) if folds and flags.fold is None else range(0)


def _check_only_measured(flags):
    """Cross-validation measures, and leaves no adapter of all data. Raises `InputError`."""
    unused = ("do_predict", "do_export", "adapter_dir", "export_dir")
    given = [name for name in unused if getattr(flags, name)]
    if given:
        raise InputError(
            f"--folds measures, and has no one adapter for --{given[0]}: each run has its own. "
            "Train again without --folds, or ask for one run by --fold."
        )


def _check_value(sweep, value):
    if value is not None and not isinstance(value, bool):
        try:
            text_of(value)
        except InputError as error:
            raise InputError(f"--sweep={sweep}: each of the values {error}") from error


def all_runs(flags, grid):
    """List of (setting, flags of the run): every setting with every seed. Raises `InputError`."""
    folds = [{"fold": number} for number in folds_of(flags)] or [{}]
    count = math.prod(map(len, grid.values())) * flags.num_trials * len(folds)
    if count > MOST_RUNS:
        raise InputError(
            f"--sweep={flags.sweep} with --num_trials={flags.num_trials} and {len(folds)} folds "
            f"makes {count:,} runs; at most {MOST_RUNS:,} are made. Give fewer values."
        )
    runs = []
    for values in itertools.product(*grid.values()):
        seeds = range(flags.seed, flags.seed + flags.num_trials)
        for seed, fold in itertools.product(seeds, folds):
            changed = _changed(flags, dict(zip(grid, values, strict=True)) | {"seed": seed} | fold)
            setting = {name: getattr(changed, name) for name in grid}
            folder = _folder(flags.sweep, setting | fold, seed)
            common = {
                "adapter_dir": None,
                "sweep": None,
                "config": None,
                "num_trials": 1,
                "do_predict": False,
                "do_export": False,
                "export_dir": None,
                "output_dir": os.path.join(flags.output_dir, folder),
            }
            if "features_dir" in flags.definitions and not flags.features_dir:
                common["features_dir"] = os.path.join(flags.output_dir, "features")
            runs.append((setting, changed.changed(**common)))
    names = [run.output_dir for _, run in runs]
    twice = sorted(name for name, times in collections.Counter(names).items() if times > 1)
    if twice:
        raise InputError(
            f"--sweep={flags.sweep}: the same setting comes twice: {os.path.basename(twice[0])}"
        )
    return runs


def _changed(flags, values):
    """The flags with values of the grid. Raises `InputError`, naming the file."""
    try:
        return flags.changed(**values)
    except InputError as error:
        raise InputError(f"--sweep={flags.sweep}: {error}") from error


def _folder(sweep, setting, seed):
    """`learning_rate=0.001,seed=0`; a value of null is the flag's default."""
    parts = {name: "default" if value is None else value for name, value in setting.items()}
    named = ",".join(f"{name}={value}" for name, value in (parts | {"seed": seed}).items())
    folder = printable(named).replace("/", "_")
    if len(folder.encode()) > LONGEST_NAME:
        raise InputError(
            f"--sweep={sweep}: the values of a setting name its folder, in at most {LONGEST_NAME} "
            f"bytes. Use shorter ones. Received: {preview(folder)}"
        )
    return folder


def note_sweep(flags, grid):
    """Notes in `--output_dir` which sweep it holds.

    Args:
      flags: `RunFlags`.
      grid: what `read_grid` returns.
    """
    path = os.path.join(flags.output_dir, RECORD)
    storage.write_text(path, json.dumps(_identity(flags, grid), indent=2))


def is_interrupted(flags, grid):
    """Whether `--output_dir` holds this very sweep, begun and not finished.

    Then even `--overwrite` goes on with it: who restarts a preempted command wants no other.
    """
    held = read_record(os.path.join(flags.output_dir, RECORD))
    same = held is not None and _is_same(flags, held, _identity(flags, grid))
    return same and not _is_finished(os.path.join(flags.output_dir, "run.json"))


def _is_finished(path):
    """Whether a sweep wrote its record, and then the predictions and the export it speaks of."""
    if not storage.exists(path):
        return False
    record = read_record(path) or {}
    asked = record["flags"] if isinstance(record.get("flags"), dict) else {}
    to_come = asked.get("do_predict") or asked.get("do_export")
    return not to_come or bool(record.get("later_runs"))


def check_base(flags, base):
    """What is asked after the runs needs the base that they had. Raises `InputError`."""
    asked = " and ".join(f"--{n}" for n in ("do_predict", "do_export") if getattr(flags, n))
    if asked and base.weights_path is None:
        raise InputError(
            f"{asked} of a sweep need the base of its runs, and one of random weights is not there "
            f"any more then. Name weights with --base_model or --init_checkpoint, or leave out "
            f"{asked}."
        )


def check_sweep(flags, grid):
    """An `--output_dir` that is not overwritten holds no other sweep. Raises `InputError`."""
    if not flags.overwrite:
        _check_same(flags, os.path.join(flags.output_dir, RECORD), _identity(flags, grid))


def _identity(flags, grid):
    return json.loads(json.dumps({"grid": grid, "flags": _in_common(flags.values)}))


def _in_common(values):
    """The flags, of a dict of all, that the runs of a sweep have in common."""
    return decisive(values, table.with_role(Role.SWEEP))


def _check_same(flags, path, identity):
    held = read_record(path)
    if held is None and storage.exists(path):
        raise InputError(
            f"{path} is damaged: it says not which sweep the folder holds. Choose another "
            "--output_dir, or replace it with --overwrite."
        )
    if held is not None and not _is_same(flags, held, identity):
        raise InputError(
            f"{flags.output_dir} holds another sweep: see {path}. Choose another "
            "--output_dir, or replace it with --overwrite."
        )
    if held is None and storage.exists(os.path.join(flags.output_dir, "run.json")):
        raise InputError(
            f"{flags.output_dir} holds a single run. Choose another --output_dir, or "
            "replace it with --overwrite."
        )


def _is_same(flags, held, identity):
    """Whether a `sweep.json` says the same, where a flag that it does not name had its default."""
    theirs = held.get("flags") if isinstance(held, dict) else None
    if not isinstance(theirs, dict):
        return False
    return held | {"flags": _in_common(flags.completed(table.EARLIER | theirs))} == identity
