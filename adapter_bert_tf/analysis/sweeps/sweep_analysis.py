"""Analyses that train: a grid of settings with several seeds, each run taken up where it was."""

import csv
import io
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from adapter_bert_tf import storage
from adapter_bert_tf.analysis import outputs
from adapter_bert_tf.analysis.common import require_one_task
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.planning import data_config
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.runners.questions.task_data import task_name
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.sweeps.sweep import Sweep
from adapter_bert_tf.task_types.spans import SPANS

DECIDED = ("sweep", "config", "folds", "fold", "do_predict", "do_export", "adapter_dir")


class Point(NamedTuple):
    """One run of a grid.

    Args:
      task: its name.
      method: what is told apart in a picture: `adapters`, `top_k`, a variant.
      setting: what varies, as text.
      seed: of the run.
      trained: number of trained parameters; 0 of a run that diverged.
      metric: name of the task's first metric.
      value: of it on the dev set; NaN of a run that diverged.
      examples: of the dev set.
    """

    task: str
    method: str
    setting: str
    seed: int
    trained: int
    metric: str
    value: float
    examples: int


def check_analysis(config: RunConfig, analysis: str, names: Sequence[str]) -> None:
    """Checks the settings of an analysis that trains.

    Args:
      config: of the command.
      analysis: its name.
      names: of the files that it writes.

    Raises:
      InputError: for settings that the analysis decides.
    """
    require_one_task(config, analysis)
    if decided := [name for name in DECIDED if config.values.get(name) not in (None, False)]:
        raise InputError(
            f"`analysis {analysis}` decides what is trained. Received: "
            f"{', '.join(f'--{name}' for name in decided)}. Leave that out."
        )
    outputs.require(config.output.folder, names)


def read_data(runner: TaskRunner, config: RunConfig, cache: RunCache) -> TaskData:
    """The data of the task, which the runs share. Raises `InputError`."""
    base = cache.base(config.base)
    training = data_config(config.changed(do_train=True))
    task: TaskData
    (task,) = cache.data(training, base.vocabulary, None, runner.read)
    return task


def finished(found: Sequence[Point]) -> list[Point]:
    """The points of runs that did not diverge; says how many did.

    Raises:
      InputError: when all did.
    """
    scored = [point for point in found if not math.isnan(point.value)]
    if not scored:
        raise InputError("Every run diverged. Try a lower --learning_rate.")
    if len(scored) < len(found):
        print(f"{len(found) - len(scored)} of {len(found)} runs diverged.", flush=True)
    return scored


def completed(
    runner: TaskRunner,
    config: RunConfig,
    grid: Mapping[str, Sequence[Any]],
    method: str,
    cache: RunCache,
    known: Sequence[Point],
) -> list[Point]:
    """The runs of a grid; those that are known from elsewhere are not run.

    Args:
      runner, config, grid, method, cache: as in `points`; the last flag of the grid is what varies.
      known: points, of any method.
    """
    *_, name = grid
    settings = {str(value): value for value in grid[name]}
    there = [p for p in known if p.method == method and varied(p) in settings]
    if not there:
        return points(runner, config, grid, method, method, cache)
    found, seen = list(there), {(varied(point), point.seed) for point in there}
    for seed in range(config.training.seed, config.training.seed + config.sweeps.num_trials):
        for setting, value in settings.items():
            if (setting, seed) not in seen:
                # A folder for each, because more may be known another time.
                one = config.changed(seed=seed, num_trials=1)
                place = f"{method}_{setting}_{seed}"
                found += points(runner, one, {**grid, name: [value]}, method, place, cache)
    return found


def varied(point: Point) -> str:
    """The value that varies among runs of one method."""
    return point.setting.rpartition(",")[2] or point.method


def points(
    runner: TaskRunner,
    config: RunConfig,
    grid: Mapping[str, Sequence[Any]],
    method: str,
    folder: str,
    cache: RunCache | None = None,
) -> list[Point]:
    """Runs a grid, what is not finished, and returns its runs.

    Args:
      runner: of the task's type.
      config: of the command.
      grid: dict from flag to its values.
      method: of all runs.
      folder: below `--output_dir`, for this grid.
      cache: what several grids share.
    """
    place = os.path.join(config.output.folder, folder)
    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, f"{folder}.yaml")
        storage.write_text(path, json.dumps({name: list(v) for name, v in grid.items()}))
        ours = config.changed(sweep=path, output_dir=place, do_train=True)
        sweep = Sweep(runner, ours, cache or RunCache())
    if config.actions.dry_run:
        sweep.warn_of_ineffective_flags()
        print(f"{place}: {len(sweep.runs)} runs of {', '.join(grid)}.", flush=True)
        return []
    sweep.run()
    table = storage.read_bytes(os.path.join(place, "sweep.csv")).decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    (metric,) = json.loads(storage.read_bytes(os.path.join(place, "run.json")))["chosen_by"]
    task, examples = _task_of(config), _examples(sweep)
    return [_point(row, list(grid), method, task, metric, examples) for row in rows]


def _task_of(config: RunConfig) -> str:
    if config.answers_questions:
        return task_name(config)
    return (config.data.task_name or "").lower()


def _examples(sweep: Sweep) -> int:
    """Number of development examples."""
    for _, run_config in sweep.runs:
        path = os.path.join(run_config.output.folder, "run.json")
        if storage.exists(path):
            return int(json.loads(storage.read_bytes(path))["examples"]["dev"])
    raise InputError("Every run diverged. Try a lower --learning_rate.")


def _point(
    row: dict[str, str], names: list[str], method: str, task: str, metric: str, examples: int
) -> Point:
    setting = ",".join(row[name] for name in names)
    trained = int(row.get("trained_parameters") or 0)
    value = share(metric, float(row.get(metric) or "nan"))
    name = metric.removeprefix("eval_")
    return Point(task, method, setting, int(row["seed"]), trained, name, value, examples)


def share(metric: str, value: float) -> float:
    """A result from 0 to 1; SQuAD's official scores are in percent."""
    return value / 100 if metric in SPANS.metrics else value


def table(found: Sequence[Point]) -> bytes:
    """The CSV file of points."""
    return outputs.table(
        Point._fields, [[*point[:6], f"{point.value:.6f}", point[7]] for point in found]
    )


def numbers(
    text: str, name: str, kind: Callable[[str], Any], lowest: float, highest: float
) -> list[Any]:
    """The numbers of a flag, each once, with commas between.

    Raises:
      InputError: for what is no number, one outside of `lowest` and `highest`, and one that is
        there twice.
    """
    try:
        found = [kind(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"--{name} are numbers with commas between. Received: {preview(text)}"
        ) from error
    if not all(lowest <= number <= highest for number in found) or len({*found}) < len(found):
        raise InputError(
            f"--{name} are different numbers from {lowest:g} to {highest:g}. Received: "
            f"{preview(text)}"
        )
    return found
