"""The results of many runs: a row for each, the choice among them, and their summary."""

import csv
import io
import json
import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams

from adapter_bert_tf import storage
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Value

Setting: TypeAlias = dict[str, Value]
Row: TypeAlias = dict[str, Any]
Statistic: TypeAlias = Callable[[Sequence[float]], float]
Statistics: TypeAlias = dict[str, Statistic]  # By the suffix after the metric's name.

MOST_SHOWN = 20
OF_SEEDS: Statistics = {"": statistics.median, "_min": min, "_max": max}
OF_FOLDS: Statistics = {
    "": statistics.fmean,
    "_std": lambda values: statistics.stdev(values) if len(values) > 1 else 0.0,  # By N - 1.
    "_min": min,
    "_max": max,
}


def row_of(record: Mapping[str, Any]) -> Row:
    """Returns the row of a finished run from its `run.json`; a resumed run has no times."""
    resumed = "resumed_from_step" in record
    return {
        "status": "finished",
        "results": record["eval"],
        "trained_parameters": record["parameters"]["trained"],
        "total_parameters": record["parameters"]["total"],
        "seconds": None if resumed else record["train_seconds"],
        "examples_per_second": None if resumed else record["examples_per_second"],
    }


def table_of(runs: Sequence[tuple[Setting, RunConfig]], rows: Mapping[str, Row]) -> str:
    """Returns CSV text with a row for each run, from rows by output folder."""
    flat = []
    for setting, config in runs:
        if row := rows.get(config.output.folder):
            fold = {} if config.data.fold is None else {"fold": config.data.fold}
            seed = {"seed": config.training.seed}
            own = {name: value for name, value in row.items() if name != "results"}
            flat.append({**setting, **seed, **fold, **own, **row["results"]})
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def log_hparams(folder: str, setting: Setting, seed: int, results: Mapping[str, float]) -> None:
    """Writes a run's setting and results for TensorBoard's HParams."""
    values = {name: "default" if value is None else value for name, value in setting.items()}
    with (
        storage.local_folder(folder) as local,
        tf.summary.create_file_writer(local).as_default(step=0),
    ):
        hparams.hparams({**values, "seed": seed}, trial_id=os.path.basename(folder))
        for name, value in results.items():
            tf.summary.scalar(name, value)


def by_setting(settings: Sequence[Setting]) -> list[list[int]]:
    """Returns the numbers of the runs of each setting, in the order of the settings."""
    numbers: dict[str, list[int]] = {}
    for i, setting in enumerate(settings):
        numbers.setdefault(json.dumps(setting, sort_keys=True), []).append(i)
    return list(numbers.values())


def choose(
    settings: Sequence[Setting], scores: Sequence[float], middle: Statistic = statistics.median
) -> int | None:
    """Returns the number of the best run of the best setting; None if all runs failed.

    Args:
      settings: of each run.
      scores: of each run, higher is better; minus infinity for a run that failed.
      middle: statistic by which settings are compared.
    """
    best = max(by_setting(settings), key=lambda runs: _rank(scores, runs, middle))
    winner = max(best, key=scores.__getitem__)
    return None if scores[winner] == -math.inf else winner


def _rank(scores: Sequence[float], runs: Sequence[int], middle: Statistic) -> tuple[float, float]:
    """Returns what settings are compared by: their middle, then their mean."""
    own = [scores[i] for i in runs]
    return middle(own), statistics.fmean(own)


def ranking(
    settings: Sequence[Setting],
    scores: Sequence[float],
    metrics: Sequence[str],
    middle: Statistic = statistics.median,
    statuses: Sequence[str] = (),
) -> str:
    """Returns a table of the settings, the best first, by the `metrics`; see `choose`.

    Args:
      settings, scores: of each run.
      metrics: names of what the scores are.
      middle: statistic by which settings are compared.
      statuses: of each run: `finished`, `diverged` or `stopped`.
    """
    order = sorted(by_setting(settings), key=lambda runs: _rank(scores, runs, middle), reverse=True)
    names = list(settings[0])
    rows = [["", *names, "middle", "lowest", "highest", "runs"]]
    for place, runs in enumerate(order[:MOST_SHOWN], 1):
        finite = [scores[i] for i in runs if scores[i] > -math.inf]
        numbers = (middle(finite), min(finite), max(finite)) if finite else ()
        ended = statuses[runs[0]] if statuses else "diverged"
        cells = [f"{number:.4f}" for number in numbers] or [ended, "", ""]
        values = ["default" if v is None else str(v) for v in settings[runs[0]].values()]
        rows.append([str(place), *values, *cells, f"{len(finite)}/{len(runs)}"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    more = len(order) - MOST_SHOWN
    lines += [f"and {more} more, all in sweep.csv"] if more > 0 else []
    return "\n".join([f"Settings by {', '.join(metrics)}, the best first:", *lines])


def summarize(
    results: Sequence[Mapping[str, float]], statistics_: Statistics = OF_SEEDS
) -> dict[str, float]:
    """Returns the statistics of each metric over several runs."""
    return {
        f"{name}{suffix}": statistic([one[name] for one in results])
        for name in results[0]
        for suffix, statistic in statistics_.items()
    }
