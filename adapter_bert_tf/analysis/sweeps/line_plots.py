"""Pictures of a metric by one number: medians, ranges of seeds, a marker for each method."""

import collections
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from adapter_bert_tf.analysis.sweeps.sweep_analysis import Point
from adapter_bert_tf.sanitize import printable

# Colour, marker and line of each method: told apart in greyscale too.
LOOKS = {
    "adapters": ("#1f4e79", "o", "-"),
    "top_k": ("#c8791b", "s", "--"),
    "layer_norm": ("#4d8a4d", "D", ":"),
    "full": ("#222222", "*", ":"),
    "head": ("#8a4d7a", "v", ":"),
    "pfeiffer": ("#6fa8c9", "^", ":"),
}


def draw(found: Sequence[Point], place: Callable[[Point], float], label: str) -> Any:
    """The figure of one task.

    Args:
      found: its points.
      place: function of a point: where it is on the x axis, which is logarithmic.
      label: of that axis.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.8), layout="constrained")
    axes = figure.subplots()
    panel(axes, found, place)
    axes.set_xlabel(label)
    if len({point.method for point in found}) > 1 or any(math.isnan(p.value) for p in found):
        axes.legend(frameon=False)
    return figure


def by_parameters(found: Sequence[Point]) -> Any:
    """The figure of one task by the number of trained parameters."""
    return draw(found, lambda point: float(point.trained), "trained parameters")


def panel(axes: Any, found: Sequence[Point], place: Callable[[Point], float]) -> None:
    """Draws the points of one task: medians with lines, ranges as bars, crosses: diverged."""
    scored = [point for point in found if not math.isnan(point.value)]
    diverged = sorted({place(point) for point in found if math.isnan(point.value)})
    if diverged:
        axes.plot(
            diverged, [0.03] * len(diverged), "x", color="#a33030", label="diverged",
            transform=axes.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
    for method in dict.fromkeys(point.method for point in found):
        colour, marker, line = LOOKS[method]
        groups: dict[float, list[float]] = {}
        for point in scored:
            if point.method == method:
                groups.setdefault(place(point), []).append(100 * point.value)
        places = sorted(groups)
        middle = [statistics.median(groups[x]) for x in places]
        below = [m - min(groups[x]) for m, x in zip(middle, places, strict=True)]
        above = [max(groups[x]) - m for m, x in zip(middle, places, strict=True)]
        axes.errorbar(
            places, middle, [below, above], label=method.replace("_", "-"), color=colour,
            marker=marker, linestyle=line, capsize=3, markersize=6,
        )  # fmt: skip
    first = found[0]
    in_powers_of_ten(axes)
    axes.set_ylabel(f"{first.metric}, dev (%)")
    axes.set_title(
        f"{printable(first.task)[:40]} (n = {first.examples:,}, {_drawn(scored)})",
        fontsize=10,
        parse_math=False,
    )
    axes.grid(color="#dddddd")


def in_powers_of_ten(axes: Any) -> None:
    """A logarithmic x axis; over more than a decade labels between powers of ten would overlap."""
    from matplotlib import ticker

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    if high > 10 * low:
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())


def seeds_of(found: Sequence[Point]) -> str:
    """How many seeds stand behind a marker."""
    counts = collections.Counter((point.method, point.setting) for point in found).values()
    fewest, most = min(counts, default=0), max(counts, default=0)
    if most == 1:
        return "one seed"
    return f"{most if fewest == most else f'{fewest} to {most}'} seeds"


def _drawn(found: Sequence[Point]) -> str:
    """What a marker and its bar are."""
    seeds = seeds_of(found)
    return seeds if seeds == "one seed" else f"median and range of {seeds}"
