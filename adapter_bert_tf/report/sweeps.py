"""Runs of a sweep, of seeds or of folds: ranking, charts and links."""

import dataclasses
import math
import os
import statistics
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from adapter_bert_tf import storage
from adapter_bert_tf.report import charts
from adapter_bert_tf.report.folder import Contents
from adapter_bert_tf.report_blocks import Block, Chart, Link, Table, format_number
from adapter_bert_tf.sanitize import printable, truncate

# Columns of `sweep.csv` that are neither settings nor results.
COST = ("trained_parameters", "total_parameters", "seconds", "examples_per_second")
STOPPED = ("stopped_at_step", "stopped_score")
MAX_SHOWN, MAX_LINKED, MAX_DRAWN, MAX_LABEL = 50, 200, 16, 34
MAX_POINTS, MAX_TICKS = 500, 8
Row = dict[str, str]  # Of `sweep.csv`.


@dataclasses.dataclass(frozen=True)
class Setting:
    """The runs with the same values of the varied flags, one for each seed or fold."""

    values: dict[str, str]
    rows: list[Row]
    scores: list[float]  # Of the finished runs.
    average: float | None  # Median of the scores, for folds the mean; None without a finished run.
    rank_key: tuple[float, float]

    @property
    def name(self) -> str:
        """Its values, such as `0.001, 8`."""
        return ", ".join(value or "default" for value in self.values.values())


class Sweep:
    """The rows of `sweep.csv`, with the names of their columns."""

    def __init__(self, contents: Contents) -> None:
        self.contents, self.rows = contents, contents.runs
        names = list(self.rows[0])
        self.flags = names[: names.index("seed")]  # That differ between runs.
        self.metrics = self._metrics(names)  # Their mean ranks the runs.
        self.has_folds = any("fold" in row for row in self.rows)
        self.average_name = "mean" if self.has_folds else "median"
        self.best = str(contents.record.get("best", ""))

    def _metrics(self, names: Sequence[str]) -> list[str]:
        other_columns = {*self.flags, "seed", "fold", "status", *COST, *STOPPED}
        results = [name for name in names if name not in other_columns]
        selected = [name for name in self.contents.chosen_by if name in results]
        candidates = [name for name in results if "loss" not in name]
        preferred = [name for name in candidates if name in ("f1", "eval_average")]
        return selected or (preferred or candidates)[:1]

    def score(self, row: Row) -> float | None:
        """The mean of a run's metrics; None for an unfinished run."""
        cells = [row[name] for name in self.metrics]
        return statistics.fmean(map(float, cells)) if cells and all(cells) else None

    def settings(self) -> list[Setting]:
        """The settings, the best first; those without a finished run come last."""
        average = statistics.fmean if self.has_folds else statistics.median
        rows_by_values: dict[tuple[str, ...], list[Row]] = {}
        for row in self.rows:
            rows_by_values.setdefault(tuple(row[name] for name in self.flags), []).append(row)
        settings = []
        for values, rows in rows_by_values.items():
            scores = [score for row in rows if (score := self.score(row)) is not None]
            # As in `sweeps/results.py`: a run that diverged is worse than all others.
            failed = sum(row.get("status") in ("diverged", "stopped") for row in rows)
            compared = scores + [-math.inf] * failed if scores else [-math.inf]
            rank_key = average(compared), statistics.fmean(compared)
            named = dict(zip(self.flags, values, strict=True))
            result = average(scores) if scores else None
            settings.append(Setting(named, rows, scores, result, rank_key))
        return sorted(settings, key=lambda one: one.rank_key, reverse=True)

    def run_folder(self, row: Row) -> str:
        """Name of a run's folder in the folder of the sweep."""
        parts = {name: row[name] or "default" for name in self.flags}
        parts |= {name: row[name] for name in ("fold", "seed") if row.get(name)}
        return printable(",".join(f"{n}={x}" for n, x in parts.items())).replace("/", "_")

    def metric_label(self) -> str:
        """The ranking metric with its range."""
        names = self.metrics
        label = names[0] if len(names) == 1 else f"the mean of {', '.join(names)}"
        is_percentage = not any("eval_" in name for name in names)
        return f"{label} ({'%' if is_percentage else charts.metric_range(names)})"

    def sample_caption(self) -> str:
        """The sample for captions, such as `n = 6 of 6 runs, seeds 0 to 2`."""
        finished = sum(self.score(row) is not None for row in self.rows)
        seeds = sorted({int(row["seed"]) for row in self.rows})
        seed_text = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
        folds = len({row["fold"] for row in self.rows if row.get("fold")})
        fold_text = f", {folds} folds" if folds else ""
        return f"n = {finished} of {len(self.rows)} runs, {seed_text}{fold_text}"


def ranking(contents: Contents) -> list[Block]:
    """Makes the table of settings with median (for folds: mean) and range, the best first."""
    sweep = Sweep(contents)
    settings = sweep.settings()
    rows, marked = [], None
    for rank, setting in enumerate(settings[:MAX_SHOWN], 1):
        values = (value or "default" for value in setting.values.values())
        rows.append([str(rank), *values, *_score_cells(setting)])
        if marked is None and sweep.best in map(sweep.run_folder, setting.rows):
            marked = rank - 1
    header = ["", *sweep.flags, sweep.average_name, "lowest", "highest", "runs"]
    more = f" sweep.csv has {len(settings) - MAX_SHOWN} more." if settings[MAX_SHOWN:] else ""
    caption = f"Settings by {sweep.metric_label()}, the best first.{more}"
    return [Table(header, rows, caption, marked, place="wide" if len(header) > 6 else "")]


def _score_cells(setting: Setting) -> list[str]:
    if setting.average is None:
        return [setting.rows[0].get("status") or "diverged", "", "", "0"]
    numbers = (setting.average, min(setting.scores), max(setting.scores))
    return [*map(format_number, numbers), f"{len(setting.scores)} of {len(setting.rows)}"]


def spread(contents: Contents) -> list[Block]:
    """Makes a chart with each run as a point, by setting, and the average of each setting."""
    sweep = Sweep(contents)
    drawn = [setting for setting in sweep.settings() if setting.scores][:MAX_DRAWN]
    if not drawn:
        return []

    def paint(axes: Any) -> None:
        for y, setting in enumerate(drawn):
            scores, first = setting.scores, y == 0
            axes.plot([min(scores), max(scores)], [y, y], color=charts.GRID_COLOUR, linewidth=3)
            axes.plot(scores, [y] * len(scores), "o", color=charts.SERIES[0], alpha=0.7,
                      label="runs" if first else None)  # fmt: skip
            axes.plot([setting.average], [y], "|", color=charts.SERIES[1], markersize=15,
                      markeredgewidth=2.5, label=sweep.average_name if first else None)  # fmt: skip
        names = [truncate(printable(setting.name), MAX_LABEL) for setting in drawn]
        # The name of a single setting carries no information.
        axes.set_yticks(*((range(len(drawn)), names) if len(drawn) > 1 else ([],)))
        axes.set(
            xlabel=truncate(sweep.metric_label(), 60),
            ylabel=truncate(", ".join(sweep.flags), MAX_LABEL) or "the only setting",
            ylim=(len(drawn) + 0.6, -1),
        )
        axes.legend(loc="lower right", ncols=2)

    caption = f"Runs by setting, the best above; bars are ranges. {sweep.sample_caption()}."
    description = f"Results of {len(sweep.rows)} runs by setting"
    return [Chart(charts.draw("spread", description, paint, 1.5 + 0.26 * len(drawn)), caption)]


def scores_by_value(contents: Contents) -> list[Block]:
    """Makes a chart of the runs over the values of each numeric flag with several values."""
    sweep = Sweep(contents)
    blocks: list[Block] = []
    for name in sweep.flags:
        points = _points(sweep, name)
        if len({x for x, _ in points}) > 1:
            blocks.append(_value_chart(sweep, name, points, f"over-{len(blocks)}"))
    return blocks


def _points(sweep: Sweep, name: str) -> list[tuple[float, float]]:
    """Returns (value, score) of each finished run; empty if the values are not numbers."""
    try:
        pairs = [(float(row[name]), sweep.score(row)) for row in sweep.rows]
    except ValueError:
        return []
    return sorted((value, score) for value, score in pairs if score is not None)


def _value_chart(sweep: Sweep, name: str, points: Sequence[tuple[float, float]], id_: str) -> Chart:
    by_value: dict[float, list[float]] = {}
    for x, y in points:
        by_value.setdefault(x, []).append(y)
    values = list(by_value)
    medians = [statistics.median(scores) for scores in by_value.values()]
    is_wide = values[0] > 0 and values[-1] / values[0] >= 8
    drawn = points[:: len(points) // MAX_POINTS + 1]

    def paint(axes: Any) -> None:
        axes.plot(*zip(*drawn, strict=True), "o", color=charts.SERIES[0], alpha=0.6, label="runs")
        axes.plot(values, medians, color=charts.SERIES[1], linestyle="--", label="median")
        axes.set_xscale("log" if is_wide else "linear")
        if len(values) <= MAX_TICKS:
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.set_xticks([], minor=True)
        axes.set(xlabel=f"--{name}", ylabel=truncate(sweep.metric_label(), 40))
        axes.legend()

    caption = f"All runs over --{name}. {sweep.sample_caption()}."
    return Chart(charts.draw(id_, f"Results over {name}", paint), caption)


def runs_table(contents: Contents) -> list[Block]:
    """Makes the table of all runs, with links to their pages."""
    sweep = Sweep(contents)
    columns = sweep.rows[0]
    cost = [name for name in COST if name in columns and name != "total_parameters"]
    random_columns = [name for name in ("seed", "fold") if name in columns]
    shown = sweep.rows[:MAX_LINKED]
    folders = [sweep.run_folder(row) for row in shown]
    rows = [
        [
            _link(contents, folder),
            *(row[name] for name in random_columns),
            row.get("status", ""),
            *(_cell(row[name]) for name in sweep.metrics),
            *(_cell(row.get(name) or "", 1) for name in cost),
        ]
        for folder, row in zip(folders, shown, strict=True)
    ]
    marked = folders.index(sweep.best) if sweep.best in folders else None
    header = ["run", *random_columns, "status", *sweep.metrics, *cost]
    caption = f"Runs, {len(shown)} of {len(sweep.rows)}"
    return [Table(header, rows, caption, marked, place="wide")]


def _cell(text: str, digits: int = 4) -> str:
    return format_number(int(text) if text.isdigit() else float(text), digits) if text else ""


def _link(contents: Contents, name: str) -> Link | str:
    page = os.path.join(contents.folder, name, "report.html")
    is_linked = name in contents.names and storage.exists(page)
    return Link(name, f"{quote(name)}/report.html") if is_linked else name
