"""The runs of a sweep, of several seeds or of folds: ranked, drawn, and linked."""

import dataclasses
import math
import os
import statistics
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from adapter_bert_tf import storage
from adapter_bert_tf.report import charts
from adapter_bert_tf.report.blocks import Block, Chart, Link, Table, number
from adapter_bert_tf.report.folder import Contents
from adapter_bert_tf.sanitize import printable, truncate

# Columns of `sweep.csv` that are neither settings nor results.
COST = ("trained_parameters", "total_parameters", "seconds", "examples_per_second")
MOST_SHOWN, MOST_LINKED, MOST_DRAWN, LONGEST = 50, 200, 16, 34
MOST_POINTS, MOST_TICKS = 500, 8


@dataclasses.dataclass(frozen=True)
class Setting:
    """The runs of one setting.

    Args:
      values: of the flags that differ.
      rows: of `sweep.csv`, a seed or a fold each.
      scores: of those that finished.
      middle: of the scores: the median, of folds the mean; None if none finished.
      worth: what the sweep chose by, as `sweeps/results.py` does.
    """

    values: dict[str, str]
    rows: list[dict[str, str]]
    scores: list[float]
    middle: float | None
    worth: tuple[float, float]

    @property
    def name(self) -> str:
        """Its values: `0.001, 8`."""
        return ", ".join(value or "default" for value in self.values.values())


def settings(contents: Contents) -> list[Setting]:
    """The settings, the best first; those of which no run finished come last."""
    of_folds = any("fold" in row for row in contents.runs)
    middle = statistics.fmean if of_folds else statistics.median
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in contents.runs:
        found.setdefault(tuple(row[name] for name in varied(contents)), []).append(row)
    made = []
    for values, rows in found.items():
        scores = [score for row in rows if (score := _score(contents, row)) is not None]
        named = dict(zip(varied(contents), values, strict=True))
        worth = _worth(scores, of_folds)
        made.append(Setting(named, rows, scores, middle(scores) if scores else None, worth))
    return sorted(made, key=lambda one: one.worth, reverse=True)


def _worth(scores: Sequence[float], of_folds: bool) -> tuple[float, float]:
    """Less than any where no run finished; a setting's worth is that of all its runs otherwise."""
    if not scores:
        return -math.inf, -math.inf
    mean = statistics.fmean(scores)
    return (mean if of_folds else statistics.median_low(scores)), mean


def varied(contents: Contents) -> list[str]:
    """Names of the flags that the runs differ in, besides seed and fold."""
    names = list(contents.runs[0])
    return names[: names.index("seed")]


def metrics(contents: Contents) -> list[str]:
    """Names of the results that the runs are compared by: their mean counts."""
    names = list(contents.runs[0])
    known = {*varied(contents), "seed", "fold", "status", *COST}
    results = [name for name in names if name not in known]
    chosen = [name for name in contents.chosen_by if name in results]
    first = [name for name in results if "loss" not in name]
    usual = [name for name in first if name in ("f1", "eval_average")]
    return chosen or (usual or first)[:1]


def _score(contents: Contents, row: dict[str, str]) -> float | None:
    cells = [row[name] for name in metrics(contents)]
    return statistics.fmean(map(float, cells)) if cells and all(cells) else None


def ranking(contents: Contents) -> list[Block]:
    """The settings with median (of folds: mean) and range, the best first."""
    found = settings(contents)
    rows = [
        [str(place), *(value or "default" for value in one.values.values()), *_told(one)]
        for place, one in enumerate(found[:MOST_SHOWN], 1)
    ]
    header = ["", *varied(contents), _middle(contents), "lowest", "highest", "runs"]
    more = f" {len(found) - MOST_SHOWN} more are in sweep.csv." if found[MOST_SHOWN:] else ""
    caption = f"Settings by {_axis(contents)}, the best first.{more}"
    best = str(contents.record.get("best", ""))
    chosen = [best in (folder(contents, row) for row in one.rows) for one in found[:MOST_SHOWN]]
    marked = chosen.index(True) if any(chosen) else None
    return [Table(header, rows, caption, marked, place="wide" if len(header) > 6 else "")]


def _told(one: Setting) -> list[str]:
    if one.middle is None:
        return ["diverged", "", "", "0"]
    numbers = (one.middle, min(one.scores), max(one.scores))
    return [*map(number, numbers), f"{len(one.scores)} of {len(one.rows)}"]


def _axis(contents: Contents) -> str:
    names = metrics(contents)
    said = names[0] if len(names) == 1 else f"the mean of {', '.join(names)}"
    return f"{said} ({'from 0 to 1' if any('eval_' in n for n in names) else '%'})"


def spread(contents: Contents) -> list[Block]:
    """Each run as a point, by setting, with the middle of each setting."""
    found = [one for one in settings(contents) if one.scores][:MOST_DRAWN]
    if not found:
        return []

    def paint(axes: Any) -> None:
        for y, one in enumerate(found):
            axes.plot([min(one.scores), max(one.scores)], [y, y], color=charts.FAINT, linewidth=3)
            axes.plot(one.scores, [y] * len(one.scores), "o", color=charts.SERIES[0], alpha=0.7,
                      label="runs" if y == 0 else None)  # fmt: skip
            axes.plot([one.middle], [y], "|", color=charts.SERIES[1], markersize=15,
                      markeredgewidth=2.5, label=_middle(contents) if y == 0 else None)  # fmt: skip
        names = [truncate(printable(one.name), LONGEST) for one in found]
        if len(found) > 1:  # The name of the only one says nothing, and takes room.
            axes.set_yticks(range(len(found)), names)
        else:
            axes.set_yticks([])
        axes.set(
            xlabel=truncate(_axis(contents), 60),
            ylabel=_named(contents),
            ylim=(len(found) + 0.6, -1),
        )
        axes.legend(loc="lower right", ncols=2)

    caption = f"Runs by setting, the best above; bars are ranges. {_n(contents)}."
    about = f"Results of {len(contents.runs)} runs by setting"
    return [Chart(charts.draw("spread", about, paint, 1.5 + 0.26 * len(found)), caption)]


def _middle(contents: Contents) -> str:
    """What settings are compared by."""
    return "mean" if any("fold" in row for row in contents.runs) else "median"


def _named(contents: Contents) -> str:
    """What an axis of settings is called, by the flags whose values they are."""
    return truncate(", ".join(varied(contents)), LONGEST) or "the only setting"


def _n(contents: Contents) -> str:
    finished = sum(_score(contents, row) is not None for row in contents.runs)
    seeds = sorted({int(row["seed"]) for row in contents.runs})
    said = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    folds = len({row["fold"] for row in contents.runs if row.get("fold")})
    return f"n = {finished} of {len(contents.runs)} runs, {said}" + f", {folds} folds" * bool(folds)


def over_each(contents: Contents) -> list[Block]:
    """For each flag of numbers with several values, the runs over its values."""
    made: list[Block] = []
    for name in varied(contents):
        points = _points(contents, name)
        if len({x for x, _ in points}) > 1:
            made.append(_over(contents, name, points, f"over-{len(made)}"))
    return made


def _points(contents: Contents, name: str) -> list[tuple[float, float]]:
    """(value, score) of each run that finished; empty if the values are no numbers."""
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


def _over(contents: Contents, name: str, points: Sequence[tuple[float, float]], id_: str) -> Chart:
    by_value: dict[float, list[float]] = {}
    for x, y in points:
        by_value.setdefault(x, []).append(y)
    values = list(by_value)
    middles = [statistics.median(found) for found in by_value.values()]
    wide = values[0] > 0 and values[-1] / values[0] >= 8
    drawn = points[:: len(points) // MOST_POINTS + 1]

    def paint(axes: Any) -> None:
        axes.plot(*zip(*drawn, strict=True), "o", color=charts.SERIES[0], alpha=0.6, label="runs")
        axes.plot(values, middles, color=charts.SERIES[1], linestyle="--", label="median")
        axes.set_xscale("log" if wide else "linear")
        if len(values) <= MOST_TICKS:
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.set_xticks([], minor=True)
        axes.set(xlabel=f"--{name}", ylabel=truncate(_axis(contents), 40))
        axes.legend()

    about = f"Results over {name}"
    return Chart(charts.draw(id_, about, paint), f"All runs over --{name}. {_n(contents)}.")


def runs(contents: Contents) -> list[Block]:
    """All runs, each with a link to its page."""
    cost = [name for name in COST if name in contents.runs[0] and name != "total_parameters"]
    chance = [name for name in ("seed", "fold") if name in contents.runs[0]]
    shown = contents.runs[:MOST_LINKED]
    best = str(contents.record.get("best", ""))
    rows = [
        [
            _link(contents, row),
            *(row[name] for name in chance),
            row.get("status", ""),
            *(_cell(row[name]) for name in metrics(contents)),
            *(_cell(row.get(name) or "", 1) for name in cost),
        ]
        for row in shown
    ]
    folders = [folder(contents, row) for row in shown]
    marked = folders.index(best) if best in folders else None
    header = ["run", *chance, "status", *metrics(contents), *cost]
    return [
        Table(header, rows, f"Runs, {len(shown)} of {len(contents.runs)}", marked, place="wide")
    ]


def _cell(text: str, digits: int = 4) -> str:
    return number(float(text) if "." in text else int(text), digits) if text else ""


def folder(contents: Contents, row: dict[str, str]) -> str:
    """Name of the folder of a run, below that of the sweep."""
    parts = {name: row[name] or "default" for name in varied(contents)}
    parts |= {name: row[name] for name in ("fold", "seed") if row.get(name)}
    return printable(",".join(f"{n}={x}" for n, x in parts.items())).replace("/", "_")


def _link(contents: Contents, row: dict[str, str]) -> Link | str:
    name = folder(contents, row)
    there = name in contents.names
    if not there or not storage.exists(os.path.join(contents.folder, name, "report.html")):
        return name
    return Link(name, f"{quote(name)}/report.html")
