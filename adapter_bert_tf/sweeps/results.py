"""The results of many runs: a row for each, the choice among them, and their summary."""

import csv
import io
import json
import math
import os
import statistics
from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams

from adapter_bert_tf import storage


def row_of(record):
    """What a table says of a finished run, from its `run.json`.

    One that was interrupted knows only the seconds since, and has no time in the table.
    """
    resumed = "resumed_from_step" in record
    return {
        "status": "finished",
        "results": record["eval"],
        "trained_parameters": record["parameters"]["trained"],
        "total_parameters": record["parameters"]["total"],
        "seconds": None if resumed else record["train_seconds"],
        "examples_per_second": None if resumed else record["examples_per_second"],
    }


def table_of(runs, rows):
    """CSV text, one run a row, the results as columns among the others."""
    flat = [
        setting | _chance(run_config) | row | row["results"]
        for setting, run_config in runs
        if (row := rows.get(run_config.output.output_dir))
    ]
    for row in flat:
        del row["results"]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _chance(run_config):
    """What runs of one setting differ in."""
    fold = run_config.data.fold
    return {"seed": run_config.training.seed} | ({} if fold is None else {"fold": fold})


def log_hparams(folder, setting, seed, results):
    """A run's settings and results for TensorBoard's HParams."""
    values = {name: "default" if value is None else value for name, value in setting.items()}
    with (
        storage.local_folder(folder) as local,
        tf.summary.create_file_writer(local).as_default(step=0),
    ):
        hparams.hparams({**values, "seed": seed}, trial_id=os.path.basename(folder))
        for name, value in results.items():
            tf.summary.scalar(name, value)


def by_setting(settings):
    """Lists of the numbers of the runs of each setting, in the order of the settings."""
    found: dict[str, list[int]] = {}
    for i, setting in enumerate(settings):
        found.setdefault(json.dumps(setting, sort_keys=True), []).append(i)
    return list(found.values())


def choose(settings, scores, middle=statistics.median_low):
    """Index of the best run: of the setting with the best median, the best seed.

    Args:
      settings: list of dicts, the setting of each run.
      scores: list of numbers, one a run, more is better; minus infinity for a run that failed.
      middle: what settings are compared by, a function of their runs' scores.

    Returns:
      None if all failed.
    """
    best = max(by_setting(settings), key=lambda runs: _worth(scores, runs, middle))
    winner = max(best, key=scores.__getitem__)
    return None if scores[winner] == -math.inf else winner


def _worth(scores, runs, middle):
    """What settings are compared by; of those that are equal in it, by the mean."""
    found = [scores[i] for i in runs]
    return middle(found), statistics.fmean(found)


MOST_SHOWN = 20


def ranking(settings, scores, metrics, middle=statistics.median_low):
    """Table of the settings, the best first: middle and range of what they are compared by.

    Args:
      settings, scores, middle: as of `choose`.
      metrics: names of what is compared.
    """
    order = sorted(
        by_setting(settings), key=lambda runs: _worth(scores, runs, middle), reverse=True
    )
    names = list(settings[0])
    rows = [["", *names, "middle", "lowest", "highest", "runs"]]
    for place, runs in enumerate(order[:MOST_SHOWN], 1):
        found = [scores[i] for i in runs if scores[i] > -math.inf]
        numbers = (middle(found), min(found), max(found)) if found else ()
        cells = [f"{number:.4f}" for number in numbers] or ["diverged", "", ""]
        values = ["default" if v is None else str(v) for v in settings[runs[0]].values()]
        rows.append([str(place), *values, *cells, f"{len(found)}/{len(runs)}"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    more = len(order) - MOST_SHOWN
    lines += [f"and {more} more, all in sweep.csv"] if more > 0 else []
    return "\n".join([f"Settings by {', '.join(metrics)}, the best first:", *lines])


# What is told of the results of several runs, by what is put after the metric's name.
Told: TypeAlias = dict[str, Callable[[Sequence[float]], float]]
OF_SEEDS: Told = {"": statistics.median, "_min": min, "_max": max}
OF_FOLDS: Told = {
    "": statistics.fmean,
    "_std": lambda values: statistics.stdev(values) if len(values) > 1 else 0.0,  # By N - 1.
    "_min": min,
    "_max": max,
}


def summarize(results, told=OF_SEEDS):
    """What is told of each metric of the results of several runs.

    Args:
      results: dicts from metric to number.
      told: dict from the end of a name to a function of the runs' numbers.
    """
    return {
        f"{name}{end}": function([found[name] for found in results])
        for name in results[0]
        for end, function in told.items()
    }
