"""Several runs of one command: seeds (`--num_trials`), folds (`--folds`), grids and searches."""

import contextlib
import io
import math
import os
import time
from collections.abc import Mapping, Sequence

from adapter_bert_tf import storage
from adapter_bert_tf.config.ineffective_flags import ineffective_in_sweep
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import Conflict, InputError, Missing
from adapter_bert_tf.output.output_dir import OutputDir
from adapter_bert_tf.output.records import digest, read_record
from adapter_bert_tf.output.run_dir import require_own_adapter
from adapter_bert_tf.run.checks import path_conflicts, paths
from adapter_bert_tf.run.decided_precision import with_decided_precision
from adapter_bert_tf.run.execute import run_plan
from adapter_bert_tf.run.output_contents import RUNGS, contents_of
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.planning import check_replaced_folders, data_config, plan_run
from adapter_bert_tf.run.result_files import has_report, write_eval_results, write_report
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.store.adapter_dir import AdapterDir
from adapter_bert_tf.store.directory import copy_adapter
from adapter_bert_tf.sweeps import best_run, grid, results
from adapter_bert_tf.sweeps.messages import Job
from adapter_bert_tf.sweeps.one_run import execute, plan_again
from adapter_bert_tf.sweeps.parallel import check_devices, run_in_parallel
from adapter_bert_tf.sweeps.results import Row
from adapter_bert_tf.sweeps.run_list import RunList
from adapter_bert_tf.sweeps.search.halving import stopped_row
from adapter_bert_tf.sweeps.workers import Workers, open_workers, place_of
from adapter_bert_tf.training.progress import format_minutes

WITHOUT_RUNS = "--{} has no effect without --num_trials, --folds or --sweep."
WITHOUT_RAY = "--{} has no effect without a Ray cluster, such as --workers=ray."
ON_RAY = ("cpus_per_trial", "gpus_per_trial")


def run(runner: TaskRunner, config: RunConfig) -> None:
    """Runs a command once, or as often as `--num_trials`, `--folds` and `--sweep` require.

    Raises `InputError` for anything wrong with the settings or the data, before the first run.
    """
    cache = RunCache()
    paths.check(config)
    if not config.sweeps.sweep and config.sweeps.num_trials == 1 and not grid.folds_of(config):
        names = ("parallel_trials", "workers", "sweep_minutes", *ON_RAY)
        cache.warn(map(WITHOUT_RUNS.format, _changed(config, names)))
        run_plan(runner, plan_run(runner, config, cache))
        return
    with open_workers(config) as workers:
        config = with_decided_precision(config, cache, workers.precision)
        Sweep(runner, config, cache, workers).run()


def _changed(config: RunConfig, names: Sequence[str]) -> list[str]:
    """Returns the names of the settings that have another value than their default."""
    return [name for name in names if config.value(name) != config.defaults[name]]


class Sweep:
    """The runs of `--num_trials`, `--folds` and `--sweep`, and the choice of the best.

    Each run is planned twice: all before the first starts, to report every mistake then, and each
    again at its turn, to keep only one run's data in memory. `workers` are opened if not given.
    """

    def __init__(
        self,
        runner: TaskRunner,
        config: RunConfig,
        cache: RunCache,
        workers: Workers | None = None,
    ) -> None:
        self.runner, self.config, self.cache, self.workers = runner, config, cache, workers
        self.list = RunList(config, lambda results: runner.score(self.metrics, results))
        self.grid = self.list.grid
        self.metrics: tuple[str, ...] = ()
        self.out = config.output.folder
        self.dry_run = config.actions.dry_run

    @property
    def runs(self) -> list[tuple[results.Setting, RunConfig]]:
        """Pairs of a setting and a run: all that are known so far."""
        return self.list.runs

    def run(self) -> None:
        """Checks all runs, executes those that are not finished, and chooses the best."""
        with contextlib.ExitStack() as stack:
            self._run(self.workers or stack.enter_context(open_workers(self.config)))

    def _run(self, workers: Workers) -> None:
        config, checked = self.config, self.list.checked
        self.check()
        first = self._plan(checked[0])
        self.metrics = first.metrics
        self.contents = contents_of(self.runner.output_files(first.tasks))
        folder = OutputDir(self.out, self.contents)
        folder.require_clear_names()
        folder.require_own_files()
        grid.check_base(config, first.base)
        self.run_id = digest([self.grid, first.folder.run.run_id])
        grid.check_sweep(config, self.grid)
        self._check_adapter()
        if config.actions.do_predict:  # What is wrong with it must show before hours of training.
            predicting = checked[0].changed(do_eval=False, do_predict=True)
            self.runner.read(data_config(predicting), first.base.vocabulary, None)
        writes = not self.dry_run and first.writes
        with folder.lock() if writes else contextlib.nullcontext():
            del first  # The runs to come may have other data.
            if not self.dry_run:
                workers.check_output(self.out)
                self._begin(folder)
            rows = self._rows(workers)
            if not self.dry_run:
                self._finish(rows, self.metrics)

    def warn_of_ineffective_flags(self) -> None:
        """Warns about settings without effect in the runs, or where they are executed."""
        if not place_of(self.config).on_ray:
            self.cache.warn(map(WITHOUT_RAY.format, _changed(self.config, ON_RAY)))
        if self.grid:
            self.cache.warn(ineffective_in_sweep(self.config, self.grid, self.list.checked))

    def _begin(self, folder: OutputDir) -> None:
        """Records which sweep the folder holds; `--overwrite` removes an earlier one."""
        grid.check_sweep(self.config, self.grid)
        self.list.recall()
        if self.config.actions.overwrite and not grid.is_interrupted(self.config, self.grid):
            folder.clear()
            for run_config in self.list.configs:
                run_folder = OutputDir(run_config.output.folder, self.contents)
                if storage.isdir(run_folder.path):
                    with run_folder.lock():
                        run_folder.clear()
            self.list.forget()
        grid.note_sweep(self.config, self.grid)

    def check(self) -> None:
        """Plans all runs. Raises `InputError`."""
        config, configs = self.config, self.list.checked
        if any(one.device.distribution == "multi_worker" for one in (config, *configs)):
            raise Conflict(
                "Each run of --sweep, --num_trials and --folds is on one host. Received: "
                "--distribution=multi_worker. Start the runs one by one."
            )
        check_devices(place_of(config).at_a_time or 1, [one.device for one in configs])
        check_replaced_folders(config)
        folders = [run_config.output.folder for run_config in configs]
        path_conflicts.check(config, self.runner.output_files(()), folders)
        self.warn_of_ineffective_flags()
        # Prints the devices, which all runs share; folds print their data at their turn.
        self.cache.strategy(configs[0].device)
        silent = contextlib.redirect_stdout(io.StringIO())
        with silent if grid.folds_of(config) else contextlib.nullcontext():
            for run_config in configs:
                self._require_scores(self._plan(run_config))

    def _require_scores(self, plan: Plan) -> None:
        if not self.runner.is_evaluated(plan.actions, plan.tasks):
            raise Missing(
                "--num_trials, --folds and --sweep choose the best run on dev, and the run "
                f"{os.path.basename(plan.output.folder)} has no dev set with answers. Give one."
            )

    def _check_adapter(self) -> None:
        """Raises `InputError` if another run's adapter is where the best run's adapter goes."""
        adapter, earlier = AdapterDir(self.config.output.adapter_folder), self._earlier_run_ids()
        overwrite = self.config.actions.overwrite
        require_own_adapter(adapter, self.out, self.run_id, earlier, overwrite)

    def _earlier_run_ids(self) -> list[str | None]:
        """Returns the run ids of adapters that this sweep wrote earlier, on other data."""
        if not storage.exists(os.path.join(self.out, grid.RECORD)):
            return []
        record = read_record(os.path.join(self.out, "run.json"))
        return [None, record.get("run") if isinstance(record, dict) else None]

    def _plan(self, run_config: RunConfig) -> Plan:
        return plan_again(self.runner, run_config, self.cache)

    def _rows(self, workers: Workers) -> dict[str, Row]:
        """Returns the rows of the runs by output folder; executes those that are not finished."""
        rows = {} if self.dry_run else self._finished()
        start, before, total = time.monotonic(), len(rows), self.list.total

        def begin(run_config: RunConfig) -> None:
            number, name = (
                self.list.place(run_config) + 1,
                os.path.basename(run_config.output.folder),
            )
            print(f"***** Run {number} of {total}: {name} *****", flush=True)

        def done(run_config: RunConfig, row: Row) -> None:
            folder = run_config.output.folder
            rows[folder] = row
            if self.dry_run:
                return
            setting, _ = self.runs[self.list.place(run_config)]
            results.log_hparams(folder, setting, run_config.training.seed, row["results"])
            self._write_table(rows)
            if left := total - len(rows):
                seconds = (time.monotonic() - start) / (len(rows) - before) * left
                eta = format_minutes(seconds)
                print(f"{len(rows)} of {total} runs are done, ETA {eta}", flush=True)

        halving = self.run_id if self.config.sweeps.asha else None
        left = self.list.left(rows)
        pool = None if self.dry_run else workers.pool(self.list.checked, total - len(rows))
        if pool:
            jobs = (Job(self.runner, run_config, halving) for run_config in left)
            run_in_parallel(jobs, pool, begin, done)
        else:
            for run_config in left:
                begin(run_config)
                done(run_config, execute(self.runner, run_config, self.cache, halving))
        if not self.dry_run:
            self._write_table(rows)
        return rows

    def _write_table(self, rows: Mapping[str, Row]) -> None:
        path = os.path.join(self.out, "sweep.csv")
        storage.write_text(path, results.table_of(self.runs, rows))

    def _finished(self) -> dict[str, Row]:
        """Returns the rows of the runs that an earlier command ended, by output folder."""
        rows = {}
        for run_config in self.list.configs:
            folder = run_config.output.folder
            record = read_record(os.path.join(folder, "run.json"))
            if record and self._plan(run_config).folder.is_finished():
                rows[folder] = results.row_of(record)
                if run_config.output.report and not has_report(folder):
                    write_report(folder)
            elif self.config.sweeps.asha and storage.exists(os.path.join(folder, RUNGS)):
                run_id = self._plan(run_config).folder.run.run_id
                if row := stopped_row(folder, self.run_id, run_id):
                    rows[folder] = row
        return rows

    def _finish(self, by_folder: Mapping[str, Row], metrics: Sequence[str]) -> None:
        """Chooses the best run or setting, keeps its adapter, and writes the results."""
        folds = grid.folds_of(self.config)
        runs = [pair for pair in self.runs if pair[1].output.folder in by_folder]
        settings = [setting for setting, _ in runs]
        rows = [by_folder[run_config.output.folder] for _, run_config in runs]
        scores = [
            self.runner.score(metrics, row["results"]) if row["results"] else -math.inf
            for row in rows
        ]
        kinds = results.OF_FOLDS if folds else results.OF_SEEDS
        middle = kinds[""]
        if not runs:
            raise InputError("No run has finished. Give --sweep_minutes more time.")
        best = results.choose(settings, scores, middle)
        if best is None:
            raise InputError("Every run diverged. Try a lower --learning_rate.")
        setting, best_config = runs[best]
        if self.grid:
            statuses = [row["status"] for row in rows]
            print(results.ranking(settings, scores, metrics, middle, statuses), flush=True)
        if not folds:
            self._check_adapter()
            folder = self.config.output.adapter_folder
            copy_adapter(best_config.output.adapter_folder, folder, self.run_id)
        same = [row for s, row in zip(settings, rows, strict=True) if s == setting]
        finished = [row["results"] for row in same if row["results"]]
        best_run.write_record(self.config, self.run_id, best_config, rows, metrics)
        count = f"{len(finished)} of {len(same)}"
        print(best_run.describe_best(self.config, setting, best_config, metrics, count), flush=True)
        try:
            if self.config.actions.do_predict or self.config.actions.do_export:
                best_run.apply_best(self.runner, self.config, best_config, self.cache)
        finally:  # Not earlier: predictions for questions with answers write scores of their own.
            write_eval_results(self.out, results.summarize(finished, kinds))
        if self.config.output.report:
            write_report(self.out)
