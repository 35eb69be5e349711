"""The results of many runs: a row for each, the choice among them, and their summary."""

import csv
import io
import json
import math
import os
import statistics

import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams

from adapter_bert_tf import storage


def row_of(record):
    """What a table says of a finished run, from its `run.json`."""
    return {
        "status": "finished",
        "results": record["eval"],
        "trained_parameters": record["parameters"]["trained"],
        "total_parameters": record["parameters"]["total"],
        "seconds": record["train_seconds"],
        "examples_per_second": record["examples_per_second"],
    }


def table_of(runs, rows):
    """CSV text, one run a row, the results as columns among the others."""
    flat = [
        setting | {"seed": run_flags.seed} | row | row["results"]
        for setting, run_flags in runs
        if (row := rows.get(run_flags.output_dir))
    ]
    for row in flat:
        del row["results"]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


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


def choose(settings, scores):
    """Index of the best run: of the setting with the best median, the best seed.

    Args:
      settings: list of dicts, the setting of each run.
      scores: list of numbers, one a run, more is better; minus infinity for a run that failed.

    Returns:
      None if all failed.
    """
    by_setting: dict[str, list[int]] = {}
    for i, setting in enumerate(settings):
        by_setting.setdefault(json.dumps(setting, sort_keys=True), []).append(i)
    best = max(
        by_setting.values(),
        key=lambda runs: (
            statistics.median_low(scores[i] for i in runs),
            statistics.fmean(scores[i] for i in runs),
        ),
    )
    winner = max(best, key=scores.__getitem__)
    return None if scores[winner] == -math.inf else winner


def summarize(results):
    """Median, `_min` and `_max` of each metric over the results of several runs."""
    summary: dict[str, float] = {}
    for name in results[0]:
        values = [found[name] for found in results]
        summary |= {
            name: statistics.median(values),
            f"{name}_min": min(values),
            f"{name}_max": max(values),
        }
    return summary
