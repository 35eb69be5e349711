"""Several runs of one command: seeds (`--num_trials`) and grids (`--sweep`)."""

import csv
import io
import json
import math
import os
import statistics

import tensorflow as tf
import tf_keras
from tensorboard.plugins.hparams import api as hparams

from adapter_bert_tf import storage
from adapter_bert_tf.command.values import RunFlags
from adapter_bert_tf.errors import Diverged, InputError
from adapter_bert_tf.run import outputs, ownership, preflight, settings
from adapter_bert_tf.run.grid import RECORD, claim, plan, read_grid
from adapter_bert_tf.run.job import check_ahead, content, held, run_once
from adapter_bert_tf.run.shared import Shared
from adapter_bert_tf.serving.export import require_export_place
from adapter_bert_tf.store.directory import copy_adapter
from adapter_bert_tf.store.versions import versions


def run(kind, parsed):
    """Runs a command once, or as often as `--num_trials` and `--sweep` say.

    Args:
      kind: `Kind`.
      parsed: `absl.flags.FLAGS`, parsed.

    Raises:
      InputError: for anything wrong with the flags or the data, before the first run.
    """
    flags, shared = RunFlags.of(parsed), Shared()
    preflight.check(flags)
    if not flags.sweep and flags.num_trials == 1:
        run_once(kind, flags, shared)
        return
    grid = read_grid(flags)
    runs = plan(flags, grid)
    data = _check_all(kind, flags, shared, runs)
    with held(flags, shared.strategy(flags)):
        claim(flags, grid, kind.output_files(data))
        _run_all(kind, flags, shared, runs)


def _check_all(kind, flags, shared, runs):
    """Checks all runs before the first; returns their data. Raises `InputError`."""
    if flags.distribution == "multi_worker":
        raise InputError(
            "--sweep and --num_trials run on one host. Received: "
            "--distribution=multi_worker. Start the runs one by one."
        )
    if flags.do_export:
        require_export_place(settings.export_dir(flags))
    for _, run_flags in runs:
        check_ahead(kind, run_flags.changed(overwrite=True), shared)
    if flags.do_predict:  # What to predict must be there before hours of training.
        kind.read(runs[0][1].changed(do_train=False, do_eval=False, do_predict=True), shared, None)
    return kind.read(runs[0][1], shared, None)


def _run_all(kind, flags, shared, runs):
    """Runs what is not finished, and chooses the best."""
    rows = {} if flags.overwrite or flags.dry_run else _finished_rows(kind, shared, runs)
    for number, (setting, run_flags) in enumerate(runs, start=1):
        folder = run_flags.output_dir
        if folder in rows:
            continue
        print(f"***** Run {number} of {len(runs)}: {os.path.basename(folder)} *****", flush=True)
        rows[folder] = _one_run(kind, run_flags, shared)
        if not flags.dry_run:
            _log_hparams(folder, setting, run_flags.seed, rows[folder]["results"])
            storage.write_text(os.path.join(flags.output_dir, "sweep.csv"), _table(runs, rows))
    if not flags.dry_run:
        storage.write_text(os.path.join(flags.output_dir, "sweep.csv"), _table(runs, rows))
        _finish(kind, flags, shared, runs, [rows[run_flags.output_dir] for _, run_flags in runs])


def _finished_rows(kind, shared, runs):
    """The rows of the runs that are finished, by folder."""
    return {
        flags.output_dir: _row(outputs.read_json(os.path.join(flags.output_dir, "run.json")))
        for _, flags in runs
        if ownership.is_finished(flags, lambda f=flags: content(kind, f, shared))
    }


def _row(record):
    return {
        "status": "finished",
        "results": record["eval"],
        "trained_parameters": record["parameters"]["trained"],
        "total_parameters": record["parameters"]["total"],
        "seconds": record["train_seconds"],
        "examples_per_second": record["examples_per_second"],
    }


def _one_run(kind, flags, shared):
    """Runs once; returns its row."""
    resumes = ownership.resumes(flags, content(kind, flags, shared))
    tf_keras.backend.clear_session()
    try:
        record = run_once(kind, flags.changed(overwrite=flags.overwrite or not resumes), shared)
    except Diverged as error:
        print(error, flush=True)
        return {"status": "diverged", "results": {}}
    return {"results": {}} if flags.dry_run else _row(record)


def _table(runs, rows):
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


def _log_hparams(folder, setting, seed, results):
    """A run's settings and results for TensorBoard's HParams."""
    values = {name: "default" if value is None else value for name, value in setting.items()}
    with (
        storage.local_folder(folder) as local,
        tf.summary.create_file_writer(local).as_default(step=0),
    ):
        hparams.hparams({**values, "seed": seed}, trial_id=os.path.basename(folder))
        for name, value in results.items():
            tf.summary.scalar(name, value)


def choose(settings_, results, metric):
    """Index of the best run: of the setting with the best median, the best seed.

    A run that failed counts as worse than any other. None if all failed.

    Args:
      settings_: list of dicts, the setting of each run.
      results: list of dicts, each with `metric`, or empty if the run failed.
      metric: name; more is better.
    """
    values = [found.get(metric, -math.inf) for found in results]
    by_setting = {}
    for i, setting in enumerate(settings_):
        by_setting.setdefault(json.dumps(setting, sort_keys=True), []).append(i)
    best = max(
        by_setting.values(),
        key=lambda runs: (
            statistics.median_low(values[i] for i in runs),
            statistics.fmean(values[i] for i in runs),
        ),
    )
    winner = max(best, key=values.__getitem__)
    return None if values[winner] == -math.inf else winner


def summarize(results):
    """Median, `_min` and `_max` of each metric over the results of several runs."""
    summary = {}
    for name in results[0]:
        values = [found[name] for found in results]
        summary |= {
            name: statistics.median(values),
            f"{name}_min": min(values),
            f"{name}_max": max(values),
        }
    return summary


def _finish(kind, flags, shared, runs, rows):
    """Chooses the best run, copies its adapter, writes the results, predicts and exports."""
    metric = kind.main_metric(flags)
    best = choose([setting for setting, _ in runs], [row["results"] for row in rows], metric)
    if best is None:
        raise InputError("Every run diverged. Try a lower --learning_rate.")
    setting, best_flags = runs[best]
    adapter = settings.adapter_dir(flags)
    copy_adapter(settings.adapter_dir(best_flags), adapter)
    same = [row for (other, _), row in zip(runs, rows, strict=True) if other == setting]
    finished = [row["results"] for row in same if row["results"]]
    flags_of_all = flags.values | {
        "sweep": os.path.join(flags.output_dir, RECORD) if flags.sweep else None
    }
    storage.write_text(
        os.path.join(flags.output_dir, "run.json"),
        json.dumps(
            {
                "command": outputs.command(),
                "flags": flags_of_all,
                "versions": versions(),
                "best": os.path.basename(best_flags.output_dir),
                "runs": rows,
            },
            indent=2,
        ),
    )
    print(
        f"Best on dev ({metric}; {len(finished)} of {len(same)} seeds finished): "
        f"{setting or 'the only setting'}; its best seed is {best_flags.seed}. {adapter} holds "
        f"that adapter, {flags.output_dir}/sweep.csv every run.",
        flush=True,
    )
    if flags.do_predict or flags.do_export:
        run_once(
            kind,
            best_flags.changed(
                do_train=False,
                do_eval=False,
                do_predict=flags.do_predict,
                do_export=flags.do_export,
                export_dir=flags.export_dir,
                output_dir=flags.output_dir,
                adapter_dir=adapter,
            ),
            shared,
        )
    outputs.write_eval_results(flags.output_dir, summarize(finished))
