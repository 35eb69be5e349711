"""Several runs of one command: seeds (`--num_trials`) and grids (`--sweep`)."""

import csv
import io
import itertools
import json
import os
import statistics

import tensorflow as tf
import tf_keras
from tensorboard.plugins.hparams import api as hparams

from adapter_bert_tf.errors import Diverged, InputError
from adapter_bert_tf.run import outputs, settings
from adapter_bert_tf.run.flags import read_yaml
from adapter_bert_tf.run.job import run_once
from adapter_bert_tf.run.shared import Shared
from adapter_bert_tf.run.values import RunFlags
from adapter_bert_tf.store.directory import copy_adapter

# Houlsby et al. 2019, section 3.1.
PAPER = {"learning_rate": [3e-5, 3e-4, 3e-3], "num_train_epochs": [3, 20]}
# Flags that say what the runs have in common, and so cannot differ between them.
NOT_SWEPT = ("task_name", "data_dir", "data_source", "output_dir", "adapter_dir", "config", "sweep",
             "num_trials", "overwrite", "dry_run", "do_train", "do_eval", "do_predict", "seed")
RECORD = "sweep.json"


def run(kind, parsed):
    """Runs a command once, or as often as `--num_trials` and `--sweep` say.

    Args:
      kind: `Kind`.
      parsed: `absl.flags.FLAGS`, parsed.

    Raises:
      InputError: for anything wrong with the flags, before the first run.
    """
    flags, shared = RunFlags.of(parsed), Shared()
    if not flags.sweep and flags.num_trials == 1:
        run_once(kind, flags, shared)
        return
    grid = read_grid(flags)
    runs = plan(kind, flags, grid)
    _claim(flags, grid)
    rows = []
    for number, (setting, run_flags) in enumerate(runs, start=1):
        name = os.path.basename(run_flags.output_dir)
        print(f"***** Run {number} of {len(runs)}: {name} *****", flush=True)
        rows.append(setting | {"seed": run_flags.seed} | _one_run(kind, run_flags, shared))
        if not flags.dry_run:
            _log_hparams(run_flags.output_dir, rows[-1], setting)
            outputs.write_text(os.path.join(flags.output_dir, "sweep.csv"), _table(rows))
    if not flags.dry_run:
        _finish(kind, flags, shared, runs, rows)


def read_grid(flags):
    """Dict from flag to its list of values. Raises `InputError`."""
    if not (flags.do_train and flags.do_eval):
        raise InputError("--num_trials and --sweep need --do_train and --do_eval: the best run is "
                         "chosen on dev.")
    if not flags.output_dir:
        raise InputError("--output_dir is missing: the folder for the runs.")
    if not flags.sweep:
        return {}
    grid = PAPER if flags.sweep == "paper" else read_yaml(flags.sweep, "--sweep")
    fixed = [name for name in grid if name in NOT_SWEPT]
    if fixed or not grid:
        raise InputError(f"--sweep={flags.sweep} must hold `flag: [values]` lines; "
                         f"{'cannot vary ' + ', '.join(fixed) if fixed else 'it is empty'}. For "
                         "seeds use --num_trials.")
    unknown = sorted(str(name) for name in grid if name not in flags.definitions)
    if unknown:
        raise InputError(f"--sweep={flags.sweep}: unknown flags {unknown}.")
    return {name: values if isinstance(values, list) else [values] for name, values in grid.items()}


def plan(kind, flags, grid):
    """List of (setting, flags of the run): every setting with every seed. Raises `InputError`."""
    runs = []
    for values in itertools.product(*grid.values()):
        setting = dict(zip(grid, values, strict=True))
        for seed in range(flags.seed, flags.seed + flags.num_trials):
            changed = flags.changed(**setting, seed=seed)
            setting = {name: getattr(changed, name) for name in setting}
            folder = ",".join(f"{name}={value}" for name, value in
                              (setting | {"seed": seed}).items()).replace("/", "_")
            changed = changed.changed(
                output_dir=os.path.join(flags.output_dir, folder), adapter_dir=None, sweep=None,
                num_trials=1, config=None, do_predict=False)
            if "features_dir" in flags.definitions and not flags.features_dir:
                changed = changed.changed(features_dir=os.path.join(flags.output_dir, "features"))
            settings.check(changed.changed(overwrite=True))
            kind.check(changed, None)
            runs.append((setting, changed))
    return runs


def _claim(flags, grid):
    """One folder holds one sweep. Raises `InputError` if it holds another one."""
    path = os.path.join(flags.output_dir, RECORD)
    free = {*settings.FREE_FLAGS, "sweep", "num_trials"}
    common = {name: value for name, value in flags.values.items() if name not in free}
    identity = json.loads(json.dumps({"grid": grid, "flags": common}))
    if tf.io.gfile.exists(path) and not flags.overwrite:
        with tf.io.gfile.GFile(path) as file:
            if json.load(file) != identity:
                raise InputError(f"{flags.output_dir} holds another sweep: see {path}. Choose "
                                 "another --output_dir, or replace it with --overwrite.")
    elif not flags.overwrite and tf.io.gfile.exists(os.path.join(flags.output_dir, "run.json")):
        raise InputError(f"{flags.output_dir} holds a single run. Choose another --output_dir.")
    if not flags.dry_run:
        outputs.write_text(path, json.dumps(identity, indent=2))


def _one_run(kind, flags, shared):
    """The row of a run: done now, or found finished."""
    record = None if flags.overwrite or flags.dry_run else _finished(flags)
    if record is None:
        # An adapter without run.json is of a run that was stopped before its evaluation.
        adapter_there = tf.io.gfile.exists(os.path.join(flags.output_dir, "adapter"))
        tf_keras.backend.clear_session()
        try:
            flags = flags.changed(overwrite=True) if adapter_there else flags
            record = run_once(kind, flags, shared)
        except Diverged as error:
            print(error, flush=True)
            return {"status": "diverged", "results": {}}
    return {
        "status": "finished", "results": record.get("eval", {}),
        "trained_parameters": record["parameters"]["trained"],
        "total_parameters": record["parameters"]["total"],
        "seconds": record.get("train_seconds"),
        "examples_per_second": record.get("examples_per_second"),
    }


def _finished(flags):
    """`run.json` of a finished run with these flags, or None. Raises `InputError` for others."""
    path = os.path.join(flags.output_dir, "run.json")
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as file:
        record = json.load(file)
    return record if "eval" in record else None


def _table(rows):
    """CSV text, the results as columns among the others."""
    rows = [{name: value for name, value in row.items() if name != "results"} | row["results"]
            for row in rows]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _log_hparams(folder, row, setting):
    """The run's settings and results for TensorBoard's HParams."""
    with tf.summary.create_file_writer(folder).as_default(step=0):
        hparams.hparams({**setting, "seed": row["seed"]}, trial_id=os.path.basename(folder))
        for name, value in row["results"].items():
            tf.summary.scalar(name, value)


def choose(settings_, results, metric):
    """Index of the best run: of the setting with the best median, the best seed.

    None if all runs failed.

    Args:
      settings_: list of dicts, the setting of each run.
      results: list of dicts, each with `metric`, or empty if the run failed.
      metric: name; more is better.
    """
    by_setting = {}
    for i, (setting, found) in enumerate(zip(settings_, results, strict=True)):
        if metric in found:
            by_setting.setdefault(json.dumps(setting, sort_keys=True), []).append(i)
    if not by_setting:
        return None
    best = max(by_setting.values(), key=lambda runs: statistics.median(
        results[i][metric] for i in runs))
    return max(best, key=lambda i: results[i][metric])


def summarize(results):
    """Median, `_min` and `_max` of each metric over the results of several runs."""
    summary = {}
    for name in results[0]:
        values = [found[name] for found in results]
        summary |= {name: statistics.median(values), f"{name}_min": min(values),
                    f"{name}_max": max(values)}
    return summary


def _finish(kind, flags, shared, runs, rows):
    """Chooses the best run, copies its adapter, writes the results, predicts with it."""
    metric = kind.main_metric(flags)
    results = [row["results"] for row in rows]
    best = choose([setting for setting, _ in runs], results, metric)
    if best is None:
        raise InputError("Every run diverged. Try a lower --learning_rate.")
    setting, best_flags = runs[best]
    adapter = settings.adapter_dir(flags)
    copy_adapter(settings.adapter_dir(best_flags), adapter)
    same = [found for (other, _), found in zip(runs, results, strict=True)
            if other == setting and found]
    outputs.write_eval_results(flags.output_dir, summarize(same))
    outputs.write_text(os.path.join(flags.output_dir, "run.json"), json.dumps({
        "command": outputs.command(), "flags": flags.values, "versions": outputs.versions(),
        "best": os.path.basename(best_flags.output_dir), "runs": rows}, indent=2))
    print(f"Best on dev ({metric}, median of {len(same)}): {setting or 'the only setting'}; its "
          f"best seed is {best_flags.seed}. {adapter} holds that adapter, "
          f"{flags.output_dir}/sweep.csv every run.", flush=True)
    if flags.do_predict:
        run_once(kind, flags.changed(do_train=False, do_eval=False, sweep=None, num_trials=1,
                                     adapter_dir=adapter), shared)
