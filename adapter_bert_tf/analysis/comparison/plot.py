"""The picture of a comparison: a point and an interval for each adapter."""

from collections.abc import Sequence
from typing import Any

from adapter_bert_tf.sanitize import printable


def draw(
    task: str, rows: Sequence[Sequence[Any]], ends: str = "with 95% bootstrap intervals"
) -> Any:
    """The figure.

    Args:
      task: its name.
      rows: name, metric, value, low, high, number of examples.
      ends: what low and high are.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 1.3 + 0.36 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, (_, _, value, low, high, _) in enumerate(rows):
        axes.plot([low, high], [place, place], color="#7a7a7a", linewidth=2, zorder=1)
        axes.plot([value], [place], "o", color="#1f4e79", zorder=2)
        axes.annotate(
            f"{value:.3f}", (value, place), xytext=(0, 6), textcoords="offset points",
            ha="center", fontsize=8,
        )  # fmt: skip
    names = [_last(printable(row[0]), 32) for row in rows]
    axes.set_yticks(range(len(rows)), names, parse_math=False)
    axes.invert_yaxis()
    axes.margins(y=0.25)
    metric, count = rows[0][1], rows[0][5]
    axes.set_xlabel(f"{metric}, dev set, {ends}\n(n = {count:,})")
    axes.set_title(printable(task)[:40], fontsize=10, parse_math=False)
    axes.grid(axis="x", color="#dddddd", zorder=0)
    return figure


def _last(name: str, most: int) -> str:
    """A name without its beginning, where it is long: folders differ at the end."""
    return name if len(name) <= most else f"...{name[3 - most :]}"
