"""Several runs of one command: seeds (`--num_trials`), parts (`--folds`), grids (`--sweep`)."""

import contextlib
import io
import math
import os
import statistics
import time

import tf_keras

from adapter_bert_tf import storage
from adapter_bert_tf.config.ineffective_flags import ineffective_in_sweep
from adapter_bert_tf.config.messages import spell_for_command
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.errors import Diverged, InputError
from adapter_bert_tf.output.output_dir import OutputDir
from adapter_bert_tf.output.records import digest, read_record
from adapter_bert_tf.output.run_dir import require_own_adapter
from adapter_bert_tf.run import report_page
from adapter_bert_tf.run.checks import path_conflicts, paths
from adapter_bert_tf.run.earlier_defaults import with_earlier_defaults
from adapter_bert_tf.run.job import run_plan
from adapter_bert_tf.run.metric_files import write_eval_results
from adapter_bert_tf.run.output_contents import contents_of
from adapter_bert_tf.run.planning import (
    actions_of,
    check_places,
    data_flags,
    places_of,
    plan_run,
    strategy_of,
)
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.store.adapter_dir import AdapterDir
from adapter_bert_tf.store.directory import copy_adapter
from adapter_bert_tf.sweeps import best_run
from adapter_bert_tf.sweeps.grid import (
    RECORD,
    all_runs,
    check_base,
    check_sweep,
    folds_of,
    is_interrupted,
    note_sweep,
    read_grid,
)
from adapter_bert_tf.sweeps.results import (
    OF_FOLDS,
    OF_SEEDS,
    choose,
    log_hparams,
    ranking,
    row_of,
    summarize,
    table_of,
)
from adapter_bert_tf.training.progress import format_minutes


def run(kind, parsed):
    """Runs a command once, or as often as `--num_trials`, `--folds` and `--sweep` say.

    Args:
      kind: `Kind`.
      parsed: `absl.flags.FLAGS`, parsed.

    Raises:
      InputError: for anything wrong with the flags or the data, before the first run.
    """
    flags, reused = RunFlags.of(parsed), RunCache()
    paths.check(flags)
    if not flags.sweep and flags.num_trials == 1 and not folds_of(flags):
        run_plan(plan_run(kind, flags, reused))
        return
    Sweep(kind, with_earlier_defaults(flags), reused).run()


class Sweep:
    """The runs of `--num_trials`, `--folds` and `--sweep`, and the choice among them.

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
        metrics = first.metrics
        self.contents = contents_of(self.kind.output_files(first.tasks))
        folder = OutputDir(flags.output_dir, self.contents)
        folder.require_clear_names()
        folder.require_own_files()
        check_base(flags, first.base)
        # Of more seeds it is the same sweep.
        self.run_id = digest([self.grid, first.folder.run.run_id])
        check_sweep(flags, self.grid)
        self._check_adapter()
        if flags.do_predict:  # What to predict must be there before hours of training.
            asked = self.runs[0][1].changed(do_train=False, do_eval=False, do_predict=True)
            self.kind.read(data_flags(asked), first.base.vocabulary, None)
        writes = not flags.dry_run and first.writes
        with folder.lock() if writes else contextlib.nullcontext():
            del first  # Its data may be other data than that of the runs to come.
            if not flags.dry_run:
                self._begin(folder)
            rows = self._rows()
            if not flags.dry_run:
                self._finish(rows, metrics)

    def warn_of_unused(self):
        """Warns of flags without effect, of a grid; of other runs the command does."""
        if self.grid:
            of_runs = [run_flags for _, run_flags in self.runs]
            self.reused.warn(ineffective_in_sweep(self.flags, self.grid, of_runs))

    def _begin(self, folder):
        """Notes which sweep it is; with `--overwrite` everything of an earlier one goes."""
        flags = self.flags
        check_sweep(flags, self.grid)
        if flags.overwrite and not is_interrupted(flags, self.grid):
            folder.clear()
            for of_run in (OutputDir(r.output_dir, self.contents) for _, r in self.runs):
                if storage.isdir(of_run.path):
                    with of_run.lock():
                        of_run.clear()
        note_sweep(flags, self.grid)

    def _check(self):
        """Plans all runs before the first. Raises `InputError`."""
        flags = self.flags
        if any(one.distribution == "multi_worker" for one in (flags, *(r for _, r in self.runs))):
            raise InputError(
                "--sweep, --num_trials and --folds run on one host. Received: "
                "--distribution=multi_worker. Start the runs one by one."
            )
        actions, places = actions_of(flags), places_of(flags)
        check_places(actions, places)
        folders = [run_flags.output_dir for _, run_flags in self.runs]
        path_conflicts.check(flags, actions, places, self.kind.output_files(()), folders)
        self.warn_of_unused()
        # What each fold holds is said at its turn; what all runs share, here.
        strategy_of(self.runs[0][1], self.reused)
        silent = contextlib.redirect_stdout(io.StringIO())
        with silent if folds_of(flags) else contextlib.nullcontext():
            for _, run_flags in self.runs:
                self._plan(run_flags)

    def _check_adapter(self):
        """An adapter that is where the best is to go must be this sweep's. Raises `InputError`."""
        out, adapter = self.flags.output_dir, AdapterDir(places_of(self.flags).adapter_dir)
        require_own_adapter(adapter, out, self.run_id, self._earlier(), self.flags.overwrite)

    def _earlier(self):
        """What adapters of this sweep say of their run, that it wrote earlier on other data."""
        out = self.flags.output_dir
        if not storage.exists(os.path.join(out, RECORD)):
            return []
        record = read_record(os.path.join(out, "run.json"))
        return [None, record.get("run") if isinstance(record, dict) else None]

    def _plan(self, run_flags, overwrite=True):
        return plan_run(self.kind, run_flags.changed(overwrite=overwrite), self.reused)

    def _rows(self):
        """The row of each run, in their order; runs those that are not finished."""
        flags, table = self.flags, os.path.join(self.flags.output_dir, "sweep.csv")
        rows = {} if flags.dry_run else self._finished()
        began, before = time.monotonic(), len(rows)
        for number, (setting, run_flags) in enumerate(self.runs, start=1):
            folder = run_flags.output_dir
            if folder in rows:
                continue
            if (done := len(rows) - before) and not flags.dry_run:
                left = (time.monotonic() - began) / done * (len(self.runs) - len(rows))
                print(
                    f"{len(rows)} of {len(self.runs)} runs are done, ETA {format_minutes(left)}",
                    flush=True,
                )
            print(
                f"***** Run {number} of {len(self.runs)}: {os.path.basename(folder)} *****",
                flush=True,
            )
            rows[folder] = self._one_run(run_flags)
            if not flags.dry_run:
                log_hparams(folder, setting, run_flags.seed, rows[folder]["results"])
                storage.write_text(table, table_of(self.runs, rows))
        if not flags.dry_run:
            storage.write_text(table, table_of(self.runs, rows))
        return [rows[run_flags.output_dir] for _, run_flags in self.runs]

    def _finished(self):
        """The rows of the runs that are finished, by folder."""
        rows = {}
        for _, run_flags in self.runs:
            path = os.path.join(run_flags.output_dir, "run.json")
            if storage.exists(path) and self._plan(run_flags).folder.is_finished():
                rows[run_flags.output_dir] = row_of(read_record(path))
                if run_flags.report and not report_page.is_there(run_flags.output_dir):
                    report_page.write(run_flags.output_dir)
        return rows

    def _one_run(self, run_flags):
        """Runs once; returns its row."""
        plan = self._plan(run_flags)
        if plan.folder.can_resume():
            plan = self._plan(run_flags, overwrite=False)
        tf_keras.backend.clear_session()
        try:
            record = run_plan(plan)
        except Diverged as error:
            print(spell_for_command(error), flush=True)
            return {"status": "diverged", "results": {}}
        return {"results": {}} if self.flags.dry_run else row_of(record)

    def _finish(self, rows, metrics):
        """Chooses the best run or setting, writes the results; then `_keep`, if one is kept."""
        scores = [
            self.kind.score(metrics, row["results"]) if row["results"] else -math.inf
            for row in rows
        ]
        settings = [setting for setting, _ in self.runs]
        folds = folds_of(self.flags)
        middle = statistics.fmean if folds else statistics.median_low
        best = choose(settings, scores, middle)
        if best is None:
            raise InputError("Every run diverged. Try a lower --learning_rate.")
        setting, best_flags = self.runs[best]
        if self.grid:
            print(ranking(settings, scores, metrics, middle), flush=True)
        if not folds:
            self._keep_best(best_flags)
        same = [row for s, row in zip(settings, rows, strict=True) if s == setting]
        finished = [row["results"] for row in same if row["results"]]
        best_run.write_record(self.flags, self.run_id, best_flags, rows, metrics)
        of_runs = f"{len(finished)} of {len(same)}"
        print(best_run.describe_best(self.flags, setting, best_flags, metrics, of_runs), flush=True)
        if self.flags.do_predict or self.flags.do_export:
            best_run.apply_best(self.kind, self.flags, best_flags, self.reused)
        summary = summarize(finished, OF_FOLDS if folds else OF_SEEDS)
        write_eval_results(self.flags.output_dir, summary)
        if self.flags.report:
            report_page.write(self.flags.output_dir)

    def _keep_best(self, best_flags):
        adapter = places_of(self.flags).adapter_dir
        self._check_adapter()
        copy_adapter(places_of(best_flags).adapter_dir, adapter, self.run_id)
