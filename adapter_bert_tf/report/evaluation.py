"""Report of an evaluated set: its classes, and the report parts of its task type."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from adapter_bert_tf import report_blocks as blocks
from adapter_bert_tf.report import charts, confusion_matrix
from adapter_bert_tf.report.folder import Contents, Key
from adapter_bert_tf.report_blocks import Block, format_count, format_number
from adapter_bert_tf.sanitize import printable, truncate
from adapter_bert_tf.task_types import type_of_details
from adapter_bert_tf.task_types.report_parts import FOLDED_FROM

SCATTER_HEIGHT = 3.2  # Inches.
MAX_GROUP = 18  # Characters of a group's name under its bar.
DOTTED: Any = {"color": charts.TEXT_COLOUR, "linewidth": 1, "linestyle": ":"}


def keys(contents: Contents) -> list[Key]:
    """Returns the evaluated sets, in the order of their names."""
    return sorted({*contents.details, *contents.classes})


def title(key: Key) -> str:
    """Formats the title of a set, such as `mrpc: dev, mismatched`."""
    task, split = key
    return "".join([f"{task}: " if task else "", "dev", f", {split}" if split else ""])


def parts(contents: Contents, key: Key) -> list[Callable[[], list[Block]]]:
    """Returns functions that make blocks of a set; each may fail for a damaged file."""
    seed = f"seed {contents.flags.get('seed', 'not recorded')}"
    name = f"set-{keys(contents).index(key)}"
    makers: list[Callable[[], list[Block]]] = []
    table, details = contents.classes.get(key), contents.details.get(key)
    if details:
        split = " ".join(part for part in (key[0], "dev", key[1]) if part)
        kind = type_of_details(details["kind"])
        count = format_count(details.get("examples"), kind.example if kind else "example")
        n = f"n = {count} of {split}, {seed}"
        report_parts = kind.report_parts if kind else ()
        makers = [functools.partial(draw_part, part, details, n, name) for part in report_parts]
    if table:  # Charts come first, next to each other.
        makers.insert(0, functools.partial(draw_part, confusion, table, seed, name))
        makers.insert(2 if details else 1, functools.partial(each_class, table, seed))
    return makers


def confusion(table: Sequence[Sequence[str]], seed: str) -> list[Block]:
    """Makes the confusion matrix; tables of label sets have no columns for it."""
    header, *rows = table
    if len(header) < 5 + len(rows):
        return []
    counts = [[int(cell) for cell in row[5:]] for row in rows]
    labels = [row[0] for row in rows]
    return [blocks.Confusion(labels, counts, "class", "classes", "examples", seed)]


def each_class(table: Sequence[Sequence[str]], seed: str) -> list[Block]:
    """Makes the table of precision, recall and F1 of each class or label."""
    header, *rows = table
    n = sum(int(row[4]) for row in rows)
    cells = [[*row[:4], format_number(int(row[4]))] for row in rows]
    noun, unit = ("labels", "labels of examples") if len(header) == 5 else ("classes", "examples")
    caption = f"{len(rows)} {noun} (n = {format_number(n)} {unit}, {seed})"
    return [blocks.Table(header[:5], cells, caption, folded=len(rows) > FOLDED_FROM)]


def draw_part(
    part: Callable[[Any, str], Sequence[Block]], details: Any, n: str, name: str
) -> list[Block]:
    """Makes the blocks of a report part, with charts whose ids begin with `name`."""
    return [_draw(block, name) for block in part(details, n)]


def _draw(block: Block, name: str) -> Block:
    if isinstance(block, blocks.Confusion):
        return confusion_matrix.draw(block, name)
    return _draw_plot(block, name) if isinstance(block, blocks.Plot) else block


def _draw_plot(plot: blocks.Plot, name: str) -> blocks.Chart:
    height = {"height": SCATTER_HEIGHT} if isinstance(plot, blocks.ScatterPlot) else {}
    paint = functools.partial(PAINTERS[type(plot)], plot)
    svg = charts.draw(f"{name}-{plot.name}", plot.about, paint, **height)
    return blocks.Chart(svg, plot.caption)


def _paint_calibration(plot: blocks.CalibrationPlot, axes: Any) -> None:
    x, y = ([bin_[name] for bin_ in plot.bins] for name in ("probability", "share"))
    axes.plot([0, 1], [0, 1], label="calibrated", **DOTTED)
    axes.plot(x, y, label="model", clip_on=False, **charts.style(0))
    for bin_ in plot.bins:
        point = bin_["probability"], bin_["share"]
        offset = 0, -11 if bin_["share"] > 0.85 else 6
        style = {"textcoords": "offset points", "ha": "center", "fontsize": 7.5}
        axes.annotate(f"{bin_['count']:,}", point, offset, **style)
    axes.set(xlim=(0, 1.04), ylim=(0, 1.04), xlabel=plot.x_label, ylabel=plot.y_label)
    axes.legend(loc="upper left")


def _paint_scatter(plot: blocks.ScatterPlot, axes: Any) -> None:
    x, y = zip(*plot.points, strict=True)
    ends = [min(*x, *y), max(*x, *y)]
    axes.plot(ends, ends, label="equal", **DOTTED)
    axes.scatter(x, y, s=14, color=charts.SERIES[0], alpha=0.8, linewidths=0, label="examples")
    axes.set(xlabel=plot.x_label, ylabel=plot.y_label)
    axes.legend()


def _paint_histogram(plot: blocks.Histogram, axes: Any) -> None:
    width = 100 / len(plot.counts)
    middles = [(i + 0.5) * width for i in range(len(plot.counts))]
    axes.bar(middles, plot.counts, width * 0.9, color=charts.SERIES[0])
    axes.set(xlabel=plot.x_label, ylabel=plot.y_label)
    axes.grid(visible=False, axis="x")
    axes.yaxis.get_major_locator().set_params(integer=True)


def _paint_bars(plot: blocks.Bars, axes: Any) -> None:
    first = 0.0
    ticks: list[float] = []
    for number, bars in enumerate(plot.series):
        places = [first + i for i in range(len(bars))]
        values = [value for _, value in bars]
        axes.bar(places, values, 0.8, color=charts.SERIES[number % len(charts.SERIES)])
        for place, value in zip(places, values, strict=True):
            style = {"textcoords": "offset points", "ha": "center", "fontsize": 7.5}
            axes.annotate(f"{value:.2f}", (place, value), (0, 3), **style)
        ticks += places
        first += len(bars) + 0.6
    groups = [truncate(printable(group), MAX_GROUP) for bars in plot.series for group, _ in bars]
    axes.set_xticks(ticks, groups, fontsize=8)
    axes.set(ylim=(0, 1.08), xlabel=plot.x_label, ylabel=plot.y_label)
    axes.grid(visible=False, axis="x")


PAINTERS: dict[type[blocks.Plot], Callable[[Any, Any], None]] = {
    blocks.CalibrationPlot: _paint_calibration,
    blocks.ScatterPlot: _paint_scatter,
    blocks.Histogram: _paint_histogram,
    blocks.Bars: _paint_bars,
}
