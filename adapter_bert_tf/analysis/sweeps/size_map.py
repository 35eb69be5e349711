"""Metric by trained parameters for several tasks (Houlsby et al. 2019, Figures 1, 3, 4 and 5).

Reads tables of `analyze size` and ledgers of runs; trains nothing.
"""

import collections
import csv
import io
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.analysis import outputs, plots
from adapter_bert_tf.analysis.sweeps import ledger, line_plots
from adapter_bert_tf.analysis.sweeps.sweep_analysis import Point, finished, points_table
from adapter_bert_tf.errors import Damaged, InputError, NotFound
from adapter_bert_tf.sanitize import preview, printable

NAME = "size_map"
QUANTILES = (0.2, 0.5, 0.8)  # Of tasks, as in the paper's figures.
MIN_TASKS = 3
TOLERANCE = 1e-5  # Tables have six decimals.
MAX_COLUMNS = 3


def run(parsed: Any, command: str) -> None:
    """Joins tables and draws them. Raises `InputError`."""
    outputs.require_writable(parsed.output_dir, outputs.file_names(NAME))
    points = merge([point for path in parsed.tables for point in read(path)])
    points = _drawable(_select_tasks(points, parsed.tasks))
    tables = {f"{NAME}.csv": points_table(points)}
    print(outputs.write(parsed.output_dir, tables, draw(finished(points)), NAME, command))


def read(path: str) -> list[Point]:
    """The points of a table of `analyze size` or of a ledger. Raises `InputError`."""
    points = ledger.read(path) if path.endswith(".jsonl") else _read_table(path)
    if not points:
        raise NotFound(f"{path} holds no runs.")
    return points


def _read_table(path: str) -> list[Point]:
    reader = csv.DictReader(io.StringIO(outputs.read_table(path)))
    points: list[Point] = []
    try:
        for row in reader:
            points.append(_point(row))
    except (ValueError, csv.Error) as error:
        raise Damaged(
            f"{path}, line {reader.line_num}: {error}. It must be a table of "
            f"`analyze size`, with the columns {', '.join(Point._fields)}. Correct the line, or "
            "give another file."
        ) from error
    return points


def _point(row: Mapping[str, Any]) -> Point:
    """The point of a row of texts. Raises `ValueError`."""
    if missing := [name for name in Point._fields if row.get(name) is None]:
        raise ValueError(f"there is no {', '.join(missing)}")
    setting = row["setting"].removeprefix(row["method"]).removeprefix(",")  # As in ledgers.
    point = Point(
        row["task"], row["method"], setting, _parse(row["seed"], int),
        _parse(row["trained"], int), row["metric"], _parse(row["value"], float),
        _parse(row["examples"], int)
    )  # fmt: skip
    return ledger.check_point(point, may_diverge=True)


def _parse(text: str, kind: Callable[[str], Any]) -> Any:
    """The number in a text; the text itself if it has none, which `check_point` refuses by name."""
    try:
        return kind(text)
    except ValueError:
        return text


def merge(points: Sequence[Point]) -> list[Point]:
    """The points, those of several files once. Raises `InputError` for different results."""
    runs: dict[tuple[Any, ...], Point] = {}
    for point in points:
        first = runs.setdefault(point[:4], point)
        if abs(first.value - point.value) > TOLERANCE:
            raise InputError(
                f"There are two results of {point.task}, {point.method} {point.setting}, seed "
                f"{point.seed}: {first.value:.6f} and {point.value:.6f}. Give the tables of one."
            )
    return list(runs.values())


def _select_tasks(points: Sequence[Point], tasks: str | None) -> Sequence[Point]:
    """The points of the tasks in `--tasks`. Raises `InputError` for one without points."""
    if not tasks:
        return points
    names, known = [name.strip() for name in tasks.split(",")], {point.task for point in points}
    if unknown := [name for name in names if name not in known]:
        raise NotFound(
            f"--tasks={preview(tasks)}: there are no runs of {preview(unknown)}. The tables have "
            f"runs of {preview(sorted(known))}."
        )
    return [point for point in points if point.task in names]


def _drawable(points: Sequence[Point]) -> list[Point]:
    """The points of methods with a style; prints the others. Raises `InputError` for none."""
    if unknown := {p.method for p in points} - line_plots.STYLES.keys():
        print(f"Left out, as no method of `analyze size`: {printable(', '.join(sorted(unknown)))}")
    drawable = [point for point in points if point.method in line_plots.STYLES]
    if not drawable:
        raise NotFound(
            f"There are no runs of a method that is drawn: {', '.join(line_plots.STYLES)}."
        )
    return drawable


def differences(points: Sequence[Point]) -> list[tuple[str, float, list[float]]]:
    """Rows of method, median of trained parameters, and points below full tuning for each task."""
    groups: dict[tuple[str, str], dict[str, list[Point]]] = collections.defaultdict(
        lambda: collections.defaultdict(list)
    )
    for point in points:
        groups[point.method, point.setting][point.task].append(point)
    full = {
        task: statistics.median(point.value for point in group)
        for (method, _), tasks in groups.items()
        if method == "full"
        for task, group in tasks.items()
    }
    rows = []
    for (method, _), tasks in groups.items():
        changes = [
            100 * (statistics.median(point.value for point in group) - full[task])
            for task, group in tasks.items()
            if task in full and method != "full"
        ]
        if changes:
            trained = statistics.median(group[0].trained for group in tasks.values())
            rows.append((method, trained, changes))
    return sorted(rows)


def draw(points: Sequence[Point]) -> Any:
    """Draws a panel for each task, and one with percentiles over tasks."""
    tasks = list(dict.fromkeys(point.task for point in points))
    rows = [row for row in differences(points) if len(row[2]) >= MIN_TASKS]
    panels = len(tasks) + bool(rows)
    columns, lines = min(panels, MAX_COLUMNS), -(-panels // MAX_COLUMNS)
    figure = plots.new_figure(4.3 * columns, 3.4 * lines)
    all_axes = figure.subplots(lines, columns, squeeze=False).reshape(-1)
    for axes, task in zip(all_axes, tasks, strict=False):
        task_points = [point for point in points if point.task == task]
        line_plots.draw_panel(axes, task_points, line_plots.parameters)
        axes.set_xlabel("trained parameters")
    if rows:
        _draw_percentiles(all_axes[len(tasks)], rows)
    for axes in all_axes[panels:]:
        axes.set_visible(False)
    methods = list(dict.fromkeys(point.method for point in points))
    handles = []
    for method in methods:
        color, marker, line = line_plots.STYLES[method]
        label = method.replace("_", "-")
        handles += all_axes[0].plot([], [], color=color, marker=marker, linestyle=line, label=label)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(methods), 3 * columns),
        frameon=False
    )  # fmt: skip
    return figure


def _draw_percentiles(axes: Any, rows: Sequence[tuple[str, float, list[float]]]) -> None:
    """Draws the 20th, 50th and 80th percentile of the differences of tasks."""
    for method in dict.fromkeys(row[0] for row in rows):
        color, marker, line = line_plots.STYLES[method]
        own = [(trained, changes) for name, trained, changes in rows if name == method]
        low, median, high = np.transpose([np.quantile(changes, QUANTILES) for _, changes in own])
        axes.errorbar(
            [trained for trained, _ in own], median, [median - low, high - median], color=color,
            marker=marker, linestyle=line, capsize=3
        )  # fmt: skip
    axes.axhline(0, color="#222222", linewidth=0.8)
    line_plots.set_log_axis(axes)
    axes.set_xlabel("trained parameters")
    axes.set_ylabel("points above full fine-tuning")
    counts = sorted({len(changes) for _, _, changes in rows})
    tasks = f"{' or '.join(map(str, counts))} tasks"
    axes.set_title(f"20th, 50th, 80th percentile of {tasks}", fontsize=10)
    axes.grid(color="#dddddd")
