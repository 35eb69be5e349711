"""The runs of a sweep: settings times seeds and folds, each in its own folder."""

import collections
import itertools
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from adapter_bert_tf import storage
from adapter_bert_tf.base import Base
from adapter_bert_tf.config.parsing import parse_value
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Value
from adapter_bert_tf.config.settings import BY_NAME, EARLIER, NOT_SWEPT, with_role
from adapter_bert_tf.config.yaml_file import as_text, read_yaml
from adapter_bert_tf.errors import Conflict, Damaged, InputError, Missing, Occupied, error_context
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.output.run_dir import SWEEP
from adapter_bert_tf.run.fingerprint import decisive
from adapter_bert_tf.sanitize import preview, printable
from adapter_bert_tf.sweeps.results import Setting
from adapter_bert_tf.sweeps.search.space import is_range, parse_range

Grid: TypeAlias = dict[str, Any]  # Lists of values, or ranges for a search.

# Houlsby et al. 2019, section 3.1.
PAPER: Grid = {"learning_rate": [3e-5, 3e-4, 3e-3], "num_train_epochs": [3, 20]}
RECORD = SWEEP
MOST_RUNS = 10_000
LONGEST_NAME = 240  # Bytes of a folder's name; file systems take 255.


def read_grid(config: RunConfig) -> Grid:
    """Returns a dict from setting to its values, or to its range. Raises `InputError`."""
    if not (config.actions.do_train and config.actions.do_eval):
        raise Missing(
            "--num_trials, --folds and --sweep choose the best run on dev. Add --do_train and "
            "--do_eval."
        )
    if folds_of(config):
        _check_folds(config)
    if config.sweeps.asha and (folds_of(config) or config.sweeps.num_trials > 1):
        raise Conflict(
            "--asha compares settings by one run each. Leave out --num_trials and --folds, and run "
            "the best settings again with several seeds."
        )
    sweep = config.sweeps.sweep
    if not sweep:
        return {}
    content: dict[Any, Any] = {**PAPER} if sweep == "paper" else read_yaml(sweep, "--sweep")
    if isinstance(content.get("grid"), dict):  # A sweep.json.
        content = content["grid"]
    grid = {str(n): v if isinstance(v, list | dict) else [v] for n, v in content.items()}
    _check_grid(config, sweep, grid)
    return grid if config.sweeps.search == "grid" else _search_space(sweep, grid)


def _search_space(sweep: str, grid: Grid) -> Grid:
    """Returns the grid of a search, with typed values and complete ranges. Raises `InputError`."""
    with error_context(f"--sweep={sweep}"):
        return {
            name: parse_range(name, values)
            if is_range(values)
            else [parse_value(BY_NAME[name], value) for value in values]
            for name, values in grid.items()
        }


def _check_grid(config: RunConfig, sweep: str, grid: Grid) -> None:
    lists = {name: values for name, values in grid.items() if not is_range(values)}
    for value in itertools.chain.from_iterable(lists.values()):
        if value is not None and not isinstance(value, bool):
            try:
                as_text(value)
            except InputError as error:
                raise InputError(f"--sweep={sweep}: each of the values {error}") from error
    empty = [name for name, values in grid.items() if not values]
    if empty or not grid:
        problem = f"There are no values of {preview(empty)}." if empty else "It is empty."
        raise InputError(f"--sweep={sweep} must hold `setting: [values]` lines. {problem}")
    if fixed := [name for name in grid if name in NOT_SWEPT]:
        raise Conflict(
            f"--sweep={sweep} cannot vary {', '.join(fixed)}. For seeds use --num_trials."
        )
    if unknown := sorted(name for name in grid if name not in config.values):
        raise InputError(f"--sweep={sweep}: unknown flags {preview(unknown)}.")
    if config.sweeps.search == "grid" and len(lists) < len(grid):
        raise Missing(
            f"--sweep={sweep}: a range, as of {preview(min(grid.keys() - lists.keys()))}, needs "
            "--search=random or --search=tpe."
        )


def folds_of(config: RunConfig) -> range:
    """Returns the numbers of the folds that a command runs; none with `--fold`."""
    folds = config.data.folds
    return range(folds) if folds and config.data.fold is None else range(0)


def _check_folds(config: RunConfig) -> None:
    """Raises `InputError` for actions that need one adapter, which cross-validation lacks."""
    actions = ("do_predict", "do_export", "adapter_dir", "export_dir")
    if given := [name for name in actions if config.value(name)]:
        raise Conflict(
            f"--folds gives each run its own adapter, and leaves none for --{given[0]}. Train "
            "again without --folds, or choose one run by --fold."
        )


def combinations(config: RunConfig, grid: Grid) -> list[Setting]:
    """Returns all settings of a grid without ranges. Raises `InputError` for too many."""
    _check_count(config, math.prod(map(len, grid.values())))
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def _check_count(config: RunConfig, settings: int) -> None:
    sweeps, folds = config.sweeps, max(len(folds_of(config)), 1)
    count = settings * sweeps.num_trials * folds
    if count > MOST_RUNS:
        raise InputError(
            f"--sweep={sweeps.sweep} with --num_trials={sweeps.num_trials} and {folds} folds makes "
            f"{count:,} runs; the limit is {MOST_RUNS:,}. Give fewer values."
        )


def all_runs(config: RunConfig, settings: Sequence[Setting]) -> list[tuple[Setting, RunConfig]]:
    """Returns pairs of a setting and a run, with every seed and fold. Raises `InputError`."""
    _check_count(config, len(settings))
    folds: list[Setting] = [{"fold": number} for number in folds_of(config)] or [{}]
    seeds = range(config.training.seed, config.training.seed + config.sweeps.num_trials)
    runs = [
        _run(config, values, seed, fold)
        for values in settings
        for seed, fold in itertools.product(seeds, folds)
    ]
    names = [str(run_config.output.output_dir) for _, run_config in runs]
    if repeated := sorted(n for n, count in collections.Counter(names).items() if count > 1):
        raise InputError(
            f"--sweep={config.sweeps.sweep}: the same setting comes twice: "
            f"{os.path.basename(repeated[0])}"
        )
    return runs


def _run(config: RunConfig, values: Setting, seed: int, fold: Setting) -> tuple[Setting, RunConfig]:
    out = config.output.folder
    with error_context(f"--sweep={config.sweeps.sweep}"):
        run_config = config.changed(**values | {"seed": seed} | fold)
    setting = run_config.values_of(values)
    common: Setting = {
        "adapter_dir": None,
        **{name: config.defaults[name] for name in with_role(Role.SWEEP)},
        "config": None,
        "do_predict": False,
        "do_export": False,
        "export_dir": None,
        "output_dir": os.path.join(out, _folder_name(config.sweeps.sweep, setting | fold, seed)),
    }
    if config.keeps_features and not config.questions.features_dir:
        common["features_dir"] = os.path.join(out, "features")
    known = {name: value for name, value in common.items() if name in run_config.values}
    return setting, run_config.changed(**known)


def _folder_name(sweep: str | None, setting: Setting, seed: int) -> str:
    """Returns a name such as `learning_rate=0.001,seed=0`."""
    values = {name: "default" if value is None else value for name, value in setting.items()}
    name = ",".join(f"{name}={value}" for name, value in (values | {"seed": seed}).items())
    folder = printable(name).replace("/", "_")
    if len(folder.encode()) > LONGEST_NAME:
        raise InputError(
            f"--sweep={sweep}: a folder's name is longer than {LONGEST_NAME} bytes: "
            f"{preview(folder)}. Use shorter values."
        )
    return folder


def note_sweep(config: RunConfig, grid: Grid) -> None:
    """Records in `--output_dir` which sweep it holds."""
    path = os.path.join(config.output.folder, RECORD)
    storage.write_text(path, json.dumps(_fingerprint(config, grid), indent=2))


def is_interrupted(config: RunConfig, grid: Grid) -> bool:
    """Whether `--output_dir` holds this sweep, started and not finished.

    Then `--overwrite` continues it too: a preempted command is repeated with the same flags.
    """
    out = config.output.folder
    record = read_record(os.path.join(out, RECORD))
    same = record is not None and _is_same(config, grid, record)
    return same and not _is_finished(os.path.join(out, "run.json"))


def _is_finished(path: str) -> bool:
    """Whether a sweep wrote its record, and afterwards its predictions and its export."""
    if not storage.exists(path):
        return False
    record = read_record(path) or {}
    settings = record["flags"] if isinstance(record.get("flags"), dict) else {}
    more = settings.get("do_predict") or settings.get("do_export")
    return not more or bool(record.get("later_runs"))


def check_base(config: RunConfig, base: Base) -> None:
    """Raises `InputError` if actions after the runs cannot load the base of the runs again."""
    names = [name for name in ("do_predict", "do_export") if config.value(name)]
    actions = " and ".join(f"--{name}" for name in names)
    if actions and base.weights_path is None:
        raise Missing(
            f"{actions} of a sweep need a base whose weights can be loaded again. Add --base_model "
            f"or --init_checkpoint, or leave out {actions}."
        )


def check_sweep(config: RunConfig, grid: Grid) -> None:
    """Raises `InputError` if `--output_dir` holds another sweep, without `--overwrite`."""
    if config.actions.overwrite:
        return
    out = config.output.folder
    path = os.path.join(out, RECORD)
    record = read_record(path)
    way_out = "Choose another --output_dir, or replace it with --overwrite."
    if record is None and storage.exists(path):
        raise Damaged(f"{path} is damaged, so the sweep in this folder is unknown. {way_out}")
    if record is not None and not (
        _is_same(config, grid, record) or _adds_values(config, grid, record)
    ):
        raise Occupied(f"{out} holds another sweep: see {path}. {way_out}")
    if record is None and storage.exists(os.path.join(out, "run.json")):
        raise Occupied(f"{out} holds a single run. {way_out}")


def _fingerprint(config: RunConfig, grid: Grid) -> dict[str, Any]:
    """Returns what identifies a sweep: its grid, and the decisive settings that its runs share."""
    content: dict[str, Any] = {"grid": grid}
    content["flags"] = decisive(config.values, with_role(Role.SWEEP))
    if config.sweeps.search != "grid":  # Absent in records of earlier versions.
        content["search"] = config.sweeps.search
    as_read_later: dict[str, Any] = json.loads(json.dumps(content))
    return as_read_later


def _is_same(config: RunConfig, grid: Grid, record: Mapping[str, Any]) -> bool:
    """Whether a `sweep.json` describes this sweep; a setting that it lacks had its default."""
    settings = record.get("flags")
    if not isinstance(settings, dict):
        return False
    complete: dict[str, Value] = {**config.defaults, **EARLIER, **settings}
    recorded = {**record, "flags": decisive(complete, with_role(Role.SWEEP))}
    return recorded == _fingerprint(config, grid)


def _adds_values(config: RunConfig, grid: Grid, record: Mapping[str, Any]) -> bool:
    """Whether a sweep has all combinations that a `sweep.json` describes, and more values."""
    earlier = record.get("grid")
    if config.sweeps.search != "grid" or config.sweeps.asha or not isinstance(earlier, dict):
        return False
    # The order of the settings is that in the names of the folders.
    return (
        list(earlier) == list(grid)
        and all(value in grid[name] for name in grid for value in earlier[name])
        and _is_same(config, earlier, record)
    )
