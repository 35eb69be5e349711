"""The runs of a sweep in their order: known from the start, or proposed one after the other."""

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.run.output_contents import PROPOSALS
from adapter_bert_tf.sweeps import grid
from adapter_bert_tf.sweeps.results import Row, Setting
from adapter_bert_tf.sweeps.search.proposals import Trial, draw, propose, require_optuna
from adapter_bert_tf.sweeps.search.space import corners


class RunList:
    """The runs of a sweep, each a setting and the configuration of the run.

    Args:
      config: of the command.
      score: function from a run's results to a number; higher is better.

    Attributes:
      grid: what may vary; see `grid.read_grid`.
      runs: all runs known so far.
      checked: configurations that are checked before the first run: of all runs, or of the ends of
        all ranges if the results decide which runs follow.
      total: number of runs of the whole sweep, at most.
    """

    def __init__(self, config: RunConfig, score: Callable[[Mapping[str, float]], float]) -> None:
        self.config, self._score = config, score
        self.grid = grid.read_grid(config)
        sweeps = config.sweeps
        self.is_open = bool(self.grid) and sweeps.search == "tpe"
        if self.grid and sweeps.search != "grid":
            require_optuna()
        if self.is_open:
            settings: list[Setting] = []
        elif self.grid and sweeps.search == "random":
            settings = draw(self.grid, config.training.seed, sweeps.num_samples)
        else:
            settings = grid.combinations(config, self.grid)
        self.runs = grid.all_runs(config, settings)
        ends = grid.all_runs(config, corners(self.grid)) if self.is_open else self.runs
        self.checked = [run_config for _, run_config in ends]
        self._proposed: list[Setting] = []
        each = sweeps.num_trials * max(len(grid.folds_of(config)), 1)
        self.total = sweeps.num_samples * each if self.is_open else len(self.runs)

    @property
    def configs(self) -> list[RunConfig]:
        """The configurations of all runs known so far."""
        return [run_config for _, run_config in self.runs]

    def place(self, run_config: RunConfig) -> int:
        """Returns the place of a run in the list."""
        folders = [one.output.folder for _, one in self.runs]
        return folders.index(run_config.output.folder)

    def recall(self) -> None:
        """Reads the proposals of an interrupted search."""
        record = read_record(self._path) if self.is_open else None
        self._set((record or {}).get("proposals", []))

    def forget(self) -> None:
        """Drops the proposals, when a search starts again."""
        self._set([])

    def _set(self, proposed: list[Setting]) -> None:
        if self.is_open:
            self._proposed, different = proposed, []
            for setting in proposed:
                if setting not in different:
                    different.append(setting)
            self.runs = grid.all_runs(self.config, different)

    @property
    def _path(self) -> str:
        return os.path.join(self.config.output.folder, PROPOSALS)

    def left(self, rows: Mapping[str, Row]) -> Iterator[RunConfig]:
        """Yields the runs without a row, until the time of `--sweep_minutes` is over.

        Args:
          rows: by output folder; the caller adds those of runs that end.
        """
        minutes = self.config.sweeps.sweep_minutes
        end = None if minutes is None else time.monotonic() + 60 * minutes
        number = 0
        while number < len(self.runs) or self._propose(rows):
            run_config = self.runs[number][1]
            number += 1
            if run_config.output.folder in rows:
                continue
            if end is not None and time.monotonic() >= end:
                print(f"No further run starts: --sweep_minutes={minutes:g} are over.", flush=True)
                return
            yield run_config

    def _propose(self, rows: Mapping[str, Row]) -> bool:
        """Adds the runs of the next setting; returns whether there is one.

        A setting that was proposed before is not run again, and counts as a sample.
        """
        sweeps = self.config.sweeps
        while self.is_open and len(self._proposed) < sweeps.num_samples:
            trials = [self._trial(setting, rows) for setting in self._proposed]
            setting = propose(sweeps.search, self.grid, self.config.training.seed, trials)
            is_new = setting not in self._proposed
            self._proposed.append(setting)
            if not self.config.actions.dry_run:
                storage.write_text(self._path, json.dumps({"proposals": self._proposed}, indent=2))
            if is_new:
                self.runs += grid.all_runs(self.config, [setting])
                return True
        return False

    def _trial(self, setting: Setting, rows: Mapping[str, Row]) -> Trial:
        """Returns what is known of a proposed setting."""
        folders = [one.output.folder for _, one in grid.all_runs(self.config, [setting])]
        own: list[dict[str, Any]] = [rows[folder] for folder in folders if folder in rows]
        if len(own) < len(folders):
            return Trial(setting)
        if scores := [self._score(row["results"]) for row in own if row["results"]]:
            return Trial(setting, "finished", statistics.median(scores))
        if (score := own[0].get("stopped_score")) is not None:
            return Trial(setting, "failed", score, own[0]["stopped_at_step"])
        return Trial(setting, "failed")
