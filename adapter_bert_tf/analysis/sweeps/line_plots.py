"""Line plots of a metric: medians and ranges over seeds, a marker for each method."""

import collections
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from adapter_bert_tf.analysis import plots
from adapter_bert_tf.analysis.sweeps.sweep_analysis import Point

# Color, marker and line of each method, distinct in greyscale too.
STYLES = {
    "adapters": ("#1f4e79", "o", "-"),
    "top_k": ("#c8791b", "s", "--"),
    "layer_norm": ("#4d8a4d", "D", ":"),
    "full": ("#222222", "*", ":"),
    "head": ("#8a4d7a", "v", ":"),
    "pfeiffer": ("#6fa8c9", "^", ":"),
}


def draw(points: Sequence[Point], x_value: Callable[[Point], float], label: str) -> Any:
    """Draws the points of one task on a logarithmic x axis with this label."""
    figure = plots.new_figure(5.6, 3.8)
    axes = figure.subplots()
    draw_panel(axes, points, x_value)
    axes.set_xlabel(label)
    if len({point.method for point in points}) > 1 or any(math.isnan(p.value) for p in points):
        axes.legend(frameon=False)
    return figure


def parameters(point: Point) -> float:
    """The number of trained parameters, as an x value."""
    return float(point.trained)


def draw_panel(axes: Any, points: Sequence[Point], x_value: Callable[[Point], float]) -> None:
    """Draws the points of one task: medians with lines, ranges as bars, crosses for diverged."""
    scored = [point for point in points if not math.isnan(point.value)]
    diverged = sorted({x_value(point) for point in points if math.isnan(point.value)})
    if diverged:
        axes.plot(
            diverged, [0.03] * len(diverged), "x", color="#a33030", label="diverged",
            transform=axes.get_xaxis_transform(), clip_on=False
        )  # fmt: skip
    for method in dict.fromkeys(point.method for point in points):
        color, marker, line = STYLES[method]
        values_by_x: dict[float, list[float]] = collections.defaultdict(list)
        for point in scored:
            if point.method == method:
                values_by_x[x_value(point)].append(100 * point.value)
        x, values = sorted(values_by_x), [values_by_x[key] for key in sorted(values_by_x)]
        medians = [statistics.median(group) for group in values]
        below = [median - min(group) for median, group in zip(medians, values, strict=True)]
        above = [max(group) - median for median, group in zip(medians, values, strict=True)]
        axes.errorbar(
            x, medians, [below, above], label=method.replace("_", "-"), color=color,
            marker=marker, linestyle=line, capsize=3, markersize=6
        )  # fmt: skip
    first, seeds = points[0], seed_count(scored)
    caption = seeds if seeds == "one seed" else f"median and range of {seeds}"
    set_log_axis(axes)
    axes.set_ylabel(f"{first.metric}, dev (%)")
    plots.set_title(axes, first.task, f"n = {first.examples:,}, {caption}")
    axes.grid(color="#dddddd")


def set_log_axis(axes: Any) -> None:
    """Makes the x axis logarithmic; over more than a decade, minor labels would overlap."""
    from matplotlib import ticker

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    if high > 10 * low:
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())


def seed_count(points: Sequence[Point]) -> str:
    """Formats the number of seeds of a marker."""
    counts = collections.Counter((point.method, point.setting) for point in points).values()
    fewest, most = min(counts, default=0), max(counts, default=0)
    if most == 1:
        return "one seed"
    return f"{most if fewest == most else f'{fewest} to {most}'} seeds"
