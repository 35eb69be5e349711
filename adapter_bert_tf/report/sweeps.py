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
MAX_SHOWN, MAX_LINKED, MAX_DRAWN, MAX_LABEL = 50, 200, 16, 34
MAX_POINTS, MAX_TICKS = 500, 8


@dataclasses.dataclass(frozen=True)
class Setting:
    """The runs of one setting.

    Args:
      values: values of the varied flags.
      rows: rows of `sweep.csv`, one for each seed or fold.
      scores: scores of the finished runs.
      average: median of the scores, for folds the mean; None if no run finished.
      rank_key: sort key, as in `sweeps/results.py`.
    """

    values: dict[str, str]
    rows: list[dict[str, str]]
    scores: list[float]
    average: float | None
    rank_key: tuple[float, float]

    @property
    def name(self) -> str:
        """Its values, such as `0.001, 8`."""
        return ", ".join(value or "default" for value in self.values.values())


def settings(contents: Contents) -> list[Setting]:
    """Returns the settings, the best first; settings without a finished run come last."""
    has_folds = any("fold" in row for row in contents.runs)
    average = statistics.fmean if has_folds else statistics.median
    rows_by_values: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in contents.runs:
        rows_by_values.setdefault(tuple(row[name] for name in varied_flags(contents)), []).append(
            row
        )
    result = []
    for values, rows in rows_by_values.items():
        scores = [score for row in rows if (score := _score(contents, row)) is not None]
        named = dict(zip(varied_flags(contents), values, strict=True))
        rank_key = _rank_key(scores, has_folds)
        result.append(Setting(named, rows, scores, average(scores) if scores else None, rank_key))
    return sorted(result, key=lambda one: one.rank_key, reverse=True)


def _rank_key(scores: Sequence[float], has_folds: bool) -> tuple[float, float]:
    """Returns the sort key of a setting; below all others without a finished run."""
    if not scores:
        return -math.inf, -math.inf
    mean = statistics.fmean(scores)
    return (mean if has_folds else statistics.median_low(scores)), mean


def varied_flags(contents: Contents) -> list[str]:
    """Returns the names of the flags that differ between runs, without seed and fold."""
    names = list(contents.runs[0])
    return names[: names.index("seed")]


def metrics(contents: Contents) -> list[str]:
    """Returns the names of the results whose mean ranks the runs."""
    names = list(contents.runs[0])
    other_columns = {*varied_flags(contents), "seed", "fold", "status", *COST}
    results = [name for name in names if name not in other_columns]
    selected = [name for name in contents.chosen_by if name in results]
    candidates = [name for name in results if "loss" not in name]
    preferred = [name for name in candidates if name in ("f1", "eval_average")]
    return selected or (preferred or candidates)[:1]


def _score(contents: Contents, row: dict[str, str]) -> float | None:
    cells = [row[name] for name in metrics(contents)]
    return statistics.fmean(map(float, cells)) if cells and all(cells) else None


def ranking(contents: Contents) -> list[Block]:
    """Makes the table of settings with median (for folds: mean) and range, the best first."""
    ranked = settings(contents)
    rows = [
        [
            str(rank),
            *(value or "default" for value in setting.values.values()),
            *_score_cells(setting),
        ]
        for rank, setting in enumerate(ranked[:MAX_SHOWN], 1)
    ]
    header = ["", *varied_flags(contents), _average_name(contents), "lowest", "highest", "runs"]
    more = f" sweep.csv has {len(ranked) - MAX_SHOWN} more." if ranked[MAX_SHOWN:] else ""
    caption = f"Settings by {_metric_label(contents)}, the best first.{more}"
    best = str(contents.record.get("best", ""))
    is_best = [
        best in (run_folder(contents, row) for row in setting.rows)
        for setting in ranked[:MAX_SHOWN]
    ]
    marked = is_best.index(True) if any(is_best) else None
    return [Table(header, rows, caption, marked, place="wide" if len(header) > 6 else "")]


def _score_cells(setting: Setting) -> list[str]:
    if setting.average is None:
        return ["diverged", "", "", "0"]
    numbers = (setting.average, min(setting.scores), max(setting.scores))
    return [*map(format_number, numbers), f"{len(setting.scores)} of {len(setting.rows)}"]


def _metric_label(contents: Contents) -> str:
    names = metrics(contents)
    label = names[0] if len(names) == 1 else f"the mean of {', '.join(names)}"
    return f"{label} ({'from 0 to 1' if any('eval_' in n for n in names) else '%'})"


def spread(contents: Contents) -> list[Block]:
    """Makes a chart with each run as a point, by setting, and the average of each setting."""
    drawn = [setting for setting in settings(contents) if setting.scores][:MAX_DRAWN]
    if not drawn:
        return []

    average_name = _average_name(contents)

    def paint(axes: Any) -> None:
        for y, setting in enumerate(drawn):
            scores, first = setting.scores, y == 0
            axes.plot([min(scores), max(scores)], [y, y], color=charts.GRID_COLOUR, linewidth=3)
            axes.plot(scores, [y] * len(scores), "o", color=charts.SERIES[0], alpha=0.7,
                      label="runs" if first else None)  # fmt: skip
            axes.plot([setting.average], [y], "|", color=charts.SERIES[1], markersize=15,
                      markeredgewidth=2.5, label=average_name if first else None)  # fmt: skip
        names = [truncate(printable(setting.name), MAX_LABEL) for setting in drawn]
        if len(drawn) > 1:  # The name of a single setting carries no information.
            axes.set_yticks(range(len(drawn)), names)
        else:
            axes.set_yticks([])
        axes.set(
            xlabel=truncate(_metric_label(contents), 60),
            ylabel=_setting_label(contents),
            ylim=(len(drawn) + 0.6, -1),
        )
        axes.legend(loc="lower right", ncols=2)

    caption = f"Runs by setting, the best above; bars are ranges. {_sample_caption(contents)}."
    description = f"Results of {len(contents.runs)} runs by setting"
    return [Chart(charts.draw("spread", description, paint, 1.5 + 0.26 * len(drawn)), caption)]


def _average_name(contents: Contents) -> str:
    """Returns the name of the average that ranks settings."""
    return "mean" if any("fold" in row for row in contents.runs) else "median"


def _setting_label(contents: Contents) -> str:
    """Returns the label of an axis of settings: the names of the varied flags."""
    return truncate(", ".join(varied_flags(contents)), MAX_LABEL) or "the only setting"


def _sample_caption(contents: Contents) -> str:
    finished = sum(_score(contents, row) is not None for row in contents.runs)
    seeds = sorted({int(row["seed"]) for row in contents.runs})
    seed_text = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    folds = len({row["fold"] for row in contents.runs if row.get("fold")})
    return f"n = {finished} of {len(contents.runs)} runs, {seed_text}" + f", {folds} folds" * bool(
        folds
    )


def scores_by_value(contents: Contents) -> list[Block]:
    """Makes a chart of the runs over the values of each numeric flag with several values."""
    charts_made: list[Block] = []
    for name in varied_flags(contents):
        points = _points(contents, name)
        if len({x for x, _ in points}) > 1:
            charts_made.append(_value_chart(contents, name, points, f"over-{len(charts_made)}"))
    return charts_made


def _points(contents: Contents, name: str) -> list[tuple[float, float]]:
    """Returns (value, score) of each finished run; empty if the values are not numbers."""
    points = []
    for row in contents.runs:
        score = _score(contents, row)
        try:
            value = float(row[name])
        except ValueError:
            return []
        if score is not None:
            points.append((value, score))
    return sorted(points)


def _value_chart(
    contents: Contents, name: str, points: Sequence[tuple[float, float]], id_: str
) -> Chart:
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
        axes.set(xlabel=f"--{name}", ylabel=truncate(_metric_label(contents), 40))
        axes.legend()

    description = f"Results over {name}"
    return Chart(
        charts.draw(id_, description, paint),
        f"All runs over --{name}. {_sample_caption(contents)}.",
    )


def runs_table(contents: Contents) -> list[Block]:
    """Makes the table of all runs, with links to their pages."""
    cost = [name for name in COST if name in contents.runs[0] and name != "total_parameters"]
    random_columns = [name for name in ("seed", "fold") if name in contents.runs[0]]
    shown = contents.runs[:MAX_LINKED]
    best = str(contents.record.get("best", ""))
    rows = [
        [
            _link(contents, row),
            *(row[name] for name in random_columns),
            row.get("status", ""),
            *(_cell(row[name]) for name in metrics(contents)),
            *(_cell(row.get(name) or "", 1) for name in cost),
        ]
        for row in shown
    ]
    folders = [run_folder(contents, row) for row in shown]
    marked = folders.index(best) if best in folders else None
    header = ["run", *random_columns, "status", *metrics(contents), *cost]
    return [
        Table(header, rows, f"Runs, {len(shown)} of {len(contents.runs)}", marked, place="wide")
    ]


def _cell(text: str, digits: int = 4) -> str:
    return format_number(float(text) if "." in text else int(text), digits) if text else ""


def run_folder(contents: Contents, row: dict[str, str]) -> str:
    """Returns the name of a run's folder in the folder of the sweep."""
    parts = {name: row[name] or "default" for name in varied_flags(contents)}
    parts |= {name: row[name] for name in ("fold", "seed") if row.get(name)}
    return printable(",".join(f"{n}={x}" for n, x in parts.items())).replace("/", "_")


def _link(contents: Contents, row: dict[str, str]) -> Link | str:
    name = run_folder(contents, row)
    exists = name in contents.names
    if not exists or not storage.exists(os.path.join(contents.folder, name, "report.html")):
        return name
    return Link(name, f"{quote(name)}/report.html")
