"""Common code of analyses that train: resumable grids of settings and seeds."""

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
from adapter_bert_tf.errors import Conflict, InputError, error_context
from adapter_bert_tf.run.planning import data_config
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.sweeps.sweep import Sweep
from adapter_bert_tf.task_types.spans import SPANS

EXCLUDED_FLAGS = (
    *("sweep", "search", "asha", "sweep_minutes", "config", "folds", "fold"),
    *("do_predict", "do_export", "adapter_dir"),
)
ALL_DIVERGED = "Every run diverged. Try a lower --learning_rate."


class Point(NamedTuple):
    """One run of a grid."""

    task: str
    method: str  # As figures distinguish them: `adapters`, `top_k`.
    setting: str  # What varies, as text.
    seed: int
    trained: int  # Number of trained parameters; 0 for a run that diverged.
    metric: str  # Name of the task's first metric.
    value: float  # On the dev set; NaN for a run that diverged.
    examples: int  # Number of dev examples.


def check_analysis(config: RunConfig, analysis: str, names: Sequence[str]) -> None:
    """Raises `InputError` for settings that an analysis decides, and for foreign files."""
    require_one_task(config, analysis)
    taken = [n for n in EXCLUDED_FLAGS if config.values.get(n) not in (None, False, "grid")]
    if taken:
        raise Conflict(
            f"`analyze {analysis}` decides what is trained. Received: "
            f"{', '.join(f'--{name}' for name in taken)}. Leave it out."
        )
    outputs.require_writable(config.output.folder, names)


def read_data(runner: TaskRunner, config: RunConfig, cache: RunCache) -> TaskData:
    """The data of the task, which the runs share. Raises `InputError`."""
    base = cache.base(config.base)
    training = data_config(config.changed(do_train=True))
    task: TaskData
    (task,) = cache.data(training, base.vocabulary, None, runner.read)
    return task


def finished(points: Sequence[Point]) -> list[Point]:
    """The points that did not diverge; prints how many did. Raises `InputError` if all did."""
    scored = [point for point in points if not math.isnan(point.value)]
    if not scored:
        raise InputError(ALL_DIVERGED)
    if len(scored) < len(points):
        print(f"{len(points) - len(scored)} of {len(points)} runs diverged.", flush=True)
    return scored


class GridRunner:
    """Runs grids of settings, dicts from setting to values, with shared data and base."""

    def __init__(self, runner: TaskRunner, config: RunConfig, cache: RunCache) -> None:
        self.runner, self.config, self.cache = runner, config, cache

    def complete(
        self, grid: Mapping[str, Sequence[Any]], method: str, known: Sequence[Point]
    ) -> list[Point]:
        """As `run`, without the runs of known points; the last setting of the grid varies."""
        *_, name = grid
        values = {str(value): value for value in grid[name]}
        points = [p for p in known if p.method == method and _varied_value(p) in values]
        if not points:
            return self.run(grid, method, method)
        done = {(_varied_value(point), point.seed) for point in points}
        first_seed = self.config.training.seed
        for seed in range(first_seed, first_seed + self.config.sweeps.num_trials):
            for setting, value in values.items():
                if (setting, seed) not in done:
                    # A folder for each run, because the next call may know other points.
                    config = self.config.changed(seed=seed, num_trials=1)
                    one_run = GridRunner(self.runner, config, self.cache)
                    folder = f"{method}_{setting}_{seed}"
                    points += one_run.run({**grid, name: [value]}, method, folder)
        return points

    def check(self, grid: Mapping[str, Sequence[Any]], folder: str) -> None:
        """Plans what `run` trains, with one seed. Raises `InputError`."""
        one_seed = GridRunner(self.runner, self.config.changed(num_trials=1), self.cache)
        with error_context(f"The runs of {folder}"):
            one_seed._sweep(grid, os.path.join(self.config.output.folder, folder)).check()

    def _sweep(self, grid: Mapping[str, Sequence[Any]], output_dir: str) -> Sweep:
        with tempfile.TemporaryDirectory() as temporary:
            path = os.path.join(temporary, f"{os.path.basename(output_dir)}.yaml")
            storage.write_text(path, json.dumps({name: list(v) for name, v in grid.items()}))
            config = self.config.changed(sweep=path, output_dir=output_dir, do_train=True)
            return Sweep(self.runner, config, self.cache)

    def run(self, grid: Mapping[str, Sequence[Any]], method: str, folder: str) -> list[Point]:
        """Runs what is unfinished, in a folder of `--output_dir`; returns the points of all."""
        config, output_dir = self.config, os.path.join(self.config.output.folder, folder)
        sweep = self._sweep(grid, output_dir)
        if config.actions.dry_run:
            sweep.warn_of_ineffective_flags()
            print(f"{output_dir}: {len(sweep.runs)} runs of {', '.join(grid)}.", flush=True)
            return []
        sweep.run()
        (metric,) = _read_json(os.path.join(output_dir, "run.json"))["chosen_by"]
        table = storage.read_bytes(os.path.join(output_dir, "sweep.csv")).decode()
        return [
            Point(
                self.runner.table_name(config),
                method,
                ",".join(row[name] for name in grid),
                int(row["seed"]),
                int(row.get("trained_parameters") or 0),
                metric.removeprefix("eval_"),
                to_proportion(metric, float(row.get(metric) or "nan")),
                _count_examples(sweep),
            )
            for row in csv.DictReader(io.StringIO(table))
        ]


def _varied_value(point: Point) -> str:
    return point.setting.rpartition(",")[2] or point.method


def _count_examples(sweep: Sweep) -> int:
    """The number of development examples. Raises `InputError` if every run diverged."""
    for _, run_config in sweep.runs:
        path = os.path.join(run_config.output.folder, "run.json")
        if storage.exists(path):
            return int(_read_json(path)["examples"]["dev"])
    raise InputError(ALL_DIVERGED)


def _read_json(path: str) -> Any:
    return json.loads(storage.read_bytes(path))


def to_proportion(metric: str, value: float) -> float:
    """A result from 0 to 1; SQuAD's official scores are percentages."""
    return value / 100 if metric in SPANS.metrics else value


def points_table(points: Sequence[Point]) -> bytes:
    """Formats points as a CSV file."""
    rows = [[*point[:6], f"{point.value:.6f}", point.examples] for point in points]
    return outputs.csv_table(Point._fields, rows)


def parse_numbers(
    text: str, name: str, kind: Callable[[str], Any], lowest: float, highest: float
) -> list[Any]:
    """Parses different numbers, separated by commas, from a flag. Raises `InputError`."""
    try:
        values = [kind(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"--{name} are numbers with commas between. Received: {preview(text)}"
        ) from error
    if not all(lowest <= value <= highest for value in values) or len({*values}) < len(values):
        raise InputError(
            f"--{name} are different numbers from {lowest:g} to {highest:g}. Received: "
            f"{preview(text)}"
        )
    return values
