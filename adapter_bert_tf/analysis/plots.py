"""Parts of figures that several analyses draw: intervals, and cells of heat maps."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.sanitize import printable, truncate

MAX_NAME, MAX_TITLE = 40, 48  # Characters that fit in the width of a panel.


def new_figure(width: float, height: float) -> Any:
    """A matplotlib figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def set_title(axes: Any, name: str, details: str = "") -> None:
    """Sets the title of a panel: a name of any length, and details, on two lines if need be."""
    name = truncate(printable(name), MAX_NAME)
    title = f"{name} ({details})" if details else name
    if len(title) > MAX_TITLE:
        title = f"{name}\n({details})"
    axes.set_title(title, fontsize=10, parse_math=False)


def draw_intervals(
    task: str, rows: Sequence[Sequence[Any]], interval_name: str = "with 95% bootstrap intervals"
) -> Any:
    """Draws rows of (name, metric, value, low, high, number of examples) of a task."""
    figure = new_figure(5.6, 1.3 + 0.36 * len(rows))
    axes = figure.subplots()
    for y, (_, _, value, low, high, _) in enumerate(rows):
        axes.plot([low, high], [y, y], color="#7a7a7a", linewidth=2, zorder=1)
        axes.plot([value], [y], "o", color="#1f4e79", zorder=2)
        axes.annotate(
            f"{value:.3f}", (value, y), xytext=(0, 6), textcoords="offset points",
            ha="center", fontsize=8
        )  # fmt: skip
    # Folders differ at the end.
    names = [printable(row[0]) for row in rows]
    names = [name if len(name) <= 32 else f"...{name[-29:]}" for name in names]
    axes.set_yticks(range(len(rows)), names, parse_math=False)
    axes.invert_yaxis()
    axes.margins(y=0.25)
    metric, count = rows[0][1], rows[0][5]
    axes.set_xlabel(f"{metric}, dev set (n = {count:,}),\n{interval_name}")
    set_title(axes, task)
    axes.grid(axis="x", color="#dddddd", zorder=0)
    return figure


def draw_cells(
    axes: Any,
    values: np.ndarray,
    low: float,
    high: float,
    format_value: Callable[[float], str],
    aspect: str | None = None,
) -> Any:
    """Draws a heat map `[y, x]` with texts, whose colors survive greyscale; returns the image."""
    image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high, aspect=aspect)
    for (y, x), value in np.ndenumerate(values):
        if text := format_value(value):
            color = "white" if value < (low + high) / 2 else "black"
            axes.text(x, y, text, ha="center", va="center", fontsize=8, color=color)
    return image
