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
from adapter_bert_tf.command.run_flags import RunFlags
from adapter_bert_tf.command.wording import for_command
from adapter_bert_tf.errors import Diverged, InputError
from adapter_bert_tf.run import paths
from adapter_bert_tf.run.grid import RECORD, all_runs, note_sweep, read_grid
from adapter_bert_tf.run.job import held, run_plan
from adapter_bert_tf.run.output_files import (
    check_places,
    command,
    read_record,
    write_eval_results,
)
from adapter_bert_tf.run.planning import data_flags, places_of, plan_run
from adapter_bert_tf.run.reused import Reused
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
    flags, reused = RunFlags.of(parsed), Reused()
    paths.check(flags)
    if not flags.sweep and flags.num_trials == 1:
        run_plan(plan_run(kind, flags, reused))
        return
    Sweep(kind, flags, reused).run()


class Sweep:
    """The runs of `--num_trials` and `--sweep`, and the choice among them.

    A run is planned twice: all of them before the first one begins, so that what is wrong shows
    then, and each again at its turn, so that only one run's data is in memory.

    Args:
      kind: `Kind`.
      flags: `RunFlags` of the command.
      reused: `Reused`.
    """

    def __init__(self, kind, flags, reused):
        self.kind, self.flags, self.reused = kind, flags, reused
        self.grid = read_grid(flags)
        self.runs = all_runs(flags, self.grid)

    def run(self):
        """Checks all runs, runs what is not finished, and chooses the best."""
        flags = self.flags
        self._check()
        first = self._plan(self.runs[0][1])
        metrics, patterns = first.metrics, self.kind.output_files(first.tasks)
        if flags.do_predict:  # What to predict must be there before hours of training.
            asked = self.runs[0][1].changed(do_train=False, do_eval=False, do_predict=True)
            self.kind.read(data_flags(asked), first.base.vocabulary, None)
        check_places(flags.output_dir, patterns)
        with held(flags.output_dir, not flags.dry_run and first.writes):
            del first  # Its data may be other data than that of the runs to come.
            note_sweep(flags, self.grid, patterns)
            rows = self._rows()
            if not flags.dry_run:
                self._finish(rows, metrics)

    def _check(self):
        """Plans all runs before the first. Raises `InputError`."""
        flags = self.flags
        if any(one.distribution == "multi_worker" for one in (flags, *(r for _, r in self.runs))):
            raise InputError(
                "--sweep and --num_trials run on one host. Received: "
                "--distribution=multi_worker. Start the runs one by one."
            )
        if flags.do_export:
            require_export_place(places_of(flags).export_dir)
        for _, run_flags in self.runs:
            self._plan(run_flags)

    def _plan(self, run_flags, overwrite=True):
        return plan_run(self.kind, run_flags.changed(overwrite=overwrite), self.reused)

    def _rows(self):
        """The row of each run, in their order; runs those that are not finished."""
        flags, table = self.flags, os.path.join(self.flags.output_dir, "sweep.csv")
        rows = {} if flags.overwrite or flags.dry_run else self._finished()
        for number, (setting, run_flags) in enumerate(self.runs, start=1):
            folder = run_flags.output_dir
            if folder in rows:
                continue
            print(
                f"***** Run {number} of {len(self.runs)}: {os.path.basename(folder)} *****",
                flush=True,
            )
            rows[folder] = self._one_run(run_flags)
            if not flags.dry_run:
                _log_hparams(folder, setting, run_flags.seed, rows[folder]["results"])
                storage.write_text(table, _table(self.runs, rows))
        if not flags.dry_run:
            storage.write_text(table, _table(self.runs, rows))
        return [rows[run_flags.output_dir] for _, run_flags in self.runs]

    def _finished(self):
        """The rows of the runs that are finished, by folder."""
        rows = {}
        for _, run_flags in self.runs:
            path = os.path.join(run_flags.output_dir, "run.json")
            if storage.exists(path) and self._plan(run_flags).folder.is_finished():
                rows[run_flags.output_dir] = _row(read_record(path))
        return rows

    def _one_run(self, run_flags):
        """Runs once; returns its row."""
        plan = self._plan(run_flags)
        if not self.flags.overwrite and plan.folder.goes_on():
            plan = self._plan(run_flags, overwrite=False)
        tf_keras.backend.clear_session()
        try:
            record = run_plan(plan)
        except Diverged as error:
            print(for_command(error), flush=True)
            return {"status": "diverged", "results": {}}
        return {"results": {}} if self.flags.dry_run else _row(record)

    def _finish(self, rows, metrics):
        """Chooses the best run, copies its adapter, writes the results, predicts and exports."""
        flags = self.flags
        scores = [
            self.kind.score(metrics, row["results"]) if row["results"] else -math.inf
            for row in rows
        ]
        best = choose([setting for setting, _ in self.runs], scores)
        if best is None:
            raise InputError("Every run diverged. Try a lower --learning_rate.")
        setting, best_flags = self.runs[best]
        adapter = places_of(flags).adapter_dir
        copy_adapter(places_of(best_flags).adapter_dir, adapter)
        same = [row for (s, _), row in zip(self.runs, rows, strict=True) if s == setting]
        finished = [row["results"] for row in same if row["results"]]
        self._record(best_flags, rows)
        print(
            f"Best on dev ({', '.join(metrics)}; {len(finished)} of {len(same)} seeds finished): "
            f"{setting or 'the only setting'}; its best seed is {best_flags.seed}. {adapter} holds "
            f"that adapter, {flags.output_dir}/sweep.csv every run.",
            flush=True,
        )
        if flags.do_predict or flags.do_export:
            self._apply(best_flags, adapter)
        write_eval_results(flags.output_dir, summarize(finished))

    def _record(self, best_flags, rows):
        """Writes the sweep's `run.json`."""
        flags = self.flags
        flags_of_all = flags.values | {
            "sweep": os.path.join(flags.output_dir, RECORD) if flags.sweep else None
        }
        record = {
            "command": command(),
            "flags": flags_of_all,
            "versions": versions(),
            "best": os.path.basename(best_flags.output_dir),
            "runs": rows,
        }
        path = os.path.join(flags.output_dir, "run.json")
        storage.write_text(path, json.dumps(record, indent=2))

    def _apply(self, best_flags, adapter):
        """Predicts and exports with the best run's adapter, in the folder of the sweep."""
        flags = self.flags
        asked = best_flags.changed(
            do_train=False,
            do_eval=False,
            do_predict=flags.do_predict,
            do_export=flags.do_export,
            export_dir=flags.export_dir,
            output_dir=flags.output_dir,
            adapter_dir=adapter,
        )
        run_plan(plan_run(self.kind, asked, self.reused))


def _row(record):
    return {
        "status": "finished",
        "results": record["eval"],
        "trained_parameters": record["parameters"]["trained"],
        "total_parameters": record["parameters"]["total"],
        "seconds": record["train_seconds"],
        "examples_per_second": record["examples_per_second"],
    }


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
