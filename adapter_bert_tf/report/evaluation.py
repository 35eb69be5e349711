"""One evaluated set: its classes, and the parts that its task type makes of its details."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from adapter_bert_tf.report import charts, confusion_matrix
from adapter_bert_tf.report.folder import Contents, Key
from adapter_bert_tf.report_blocks import (
    Block,
    CalibrationPlot,
    Chart,
    Histogram,
    Plot,
    ScatterPlot,
    Table,
    format_number,
)
from adapter_bert_tf.task_types import type_of_details
from adapter_bert_tf.task_types.report_parts import FOLDED_FROM
from adapter_bert_tf.task_types.task_type import Details, ReportPart

SCATTER_HEIGHT = 3.2  # Inches.


def keys(contents: Contents) -> list[Key]:
    """The evaluated sets, in the order of their names."""
    return sorted({*contents.details, *contents.classes})


def title(key: Key) -> str:
    """What a set is called: `mrpc: dev, mismatched`."""
    task, split = key
    return "".join([f"{task}: " if task else "", "dev", f", {split}" if split else ""])


def parts(contents: Contents, key: Key) -> list[Callable[[], list[Block]]]:
    """Functions that each make some blocks of a set, and may fail where a file is damaged."""
    seed = f"seed {contents.flags.get('seed', 'not recorded')}"
    name = "-".join(["set", str(keys(contents).index(key))])
    found: list[Callable[[], list[Block]]] = []
    table, details = contents.classes.get(key), contents.details.get(key)
    if details:
        of = " ".join(part for part in (key[0], "dev", key[1]) if part)
        n = f"n = {format_number(details.get('examples'))} examples of {of}, {seed}"
        kind = type_of_details(details["kind"])
        made = kind.report_parts if kind else ()
        found = [functools.partial(drawn, part, details, n, name) for part in made]
    if table:  # Charts stand side by side, and above what is long.
        found.insert(0, functools.partial(confusion, table, name, seed))
        found.insert(2 if details else 1, functools.partial(each_class, table, seed))
    return found


def confusion(table: Sequence[Sequence[str]], name: str, seed: str) -> list[Block]:
    """Predicted by true classes; a table of label sets has no columns for it."""
    header, *rows = table
    if len(header) < 5 + len(rows):
        return []
    counts = [[int(cell) for cell in row[5:]] for row in rows]
    return [confusion_matrix.confusion([row[0] for row in rows], counts, name, seed)]


def each_class(table: Sequence[Sequence[str]], seed: str) -> list[Block]:
    """Precision, recall and F1 of each class, or label."""
    header, *rows = table
    n = sum(int(row[4]) for row in rows)
    shown = [[*row[:4], format_number(int(row[4]))] for row in rows]
    of, what = ("labels", "labels of examples") if len(header) == 5 else ("classes", "examples")
    caption = f"{len(rows)} {of} (n = {format_number(n)} {what}, {seed})"
    return [Table(header[:5], shown, caption, folded=len(rows) > FOLDED_FROM)]


def drawn(part: ReportPart, details: Details, n: str, name: str) -> list[Block]:
    """The blocks of a part, its plots as charts with ids that begin with a name."""
    return [_draw(b, name) if isinstance(b, Plot) else b for b in part(details, n)]


def _draw(plot: Plot, name: str) -> Chart:
    height = {"height": SCATTER_HEIGHT} if isinstance(plot, ScatterPlot) else {}
    paint = functools.partial(PAINTERS[type(plot)], plot)
    return Chart(charts.draw(f"{name}-{plot.name}", plot.about, paint, **height), plot.caption)


def _paint_calibration(plot: CalibrationPlot, axes: Any) -> None:
    x, y = [one["probability"] for one in plot.bins], [one["share"] for one in plot.bins]
    axes.plot(
        [0, 1], [0, 1], color=charts.TEXT_COLOUR, linewidth=1, linestyle=":", label="calibrated"
    )
    axes.plot(x, y, label="model", clip_on=False, **charts.style(0))
    for one, share, bin_ in zip(x, y, plot.bins, strict=True):
        below = share > 0.85
        axes.annotate(
            f"{bin_['count']:,}", (one, share), (0, -11 if below else 6),
            textcoords="offset points", ha="center", fontsize=7.5,
        )  # fmt: skip
    axes.set(xlim=(0, 1.04), ylim=(0, 1.04), xlabel=plot.x_label, ylabel=plot.y_label)
    axes.legend(loc="upper left")


def _paint_scatter(plot: ScatterPlot, axes: Any) -> None:
    x, y = zip(*plot.points, strict=True)
    ends = [min(*x, *y), max(*x, *y)]
    axes.plot(ends, ends, color=charts.TEXT_COLOUR, linewidth=1, linestyle=":", label="equal")
    axes.scatter(x, y, s=14, color=charts.SERIES[0], alpha=0.8, linewidths=0, label="examples")
    axes.set(xlabel=plot.x_label, ylabel=plot.y_label)
    axes.legend()


def _paint_histogram(plot: Histogram, axes: Any) -> None:
    width = 100 / len(plot.counts)
    middles = [(i + 0.5) * width for i in range(len(plot.counts))]
    axes.bar(middles, plot.counts, width * 0.9, color=charts.SERIES[0])
    axes.set(xlabel=plot.x_label, ylabel=plot.y_label)
    axes.grid(visible=False, axis="x")
    axes.yaxis.get_major_locator().set_params(integer=True)


PAINTERS: dict[type[Plot], Callable[[Any, Any], None]] = {
    CalibrationPlot: _paint_calibration,
    ScatterPlot: _paint_scatter,
    Histogram: _paint_histogram,
}
