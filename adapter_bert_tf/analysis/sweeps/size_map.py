"""What a trained parameter buys, over several tasks (Houlsby et al. 2019, Figures 1, 3, 4 and 5).

Reads tables of `analysis size` and ledgers of runs (JSON lines with task, method, seed, trained,
eval and examples, such as benchmarks/results/classification.jsonl); trains nothing.
"""

import collections
import csv
import io
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.sweeps import ledger, line_plots
from adapter_bert_tf.analysis.sweeps.sweep_analysis import Point, finished, table
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview, printable

NAME = "size_map"
QUANTILES = (0.2, 0.5, 0.8)  # Of tasks, as in the paper's figures.
FEWEST_TASKS = 3
ROUNDED = 1e-5  # Tables have six decimals.
WIDE = 3  # Panels in a row.


def read(path: str) -> list[Point]:
    """The points of a file. Raises `InputError` if it is none of these."""
    if not storage.exists(path) or storage.isdir(path):
        raise InputError(f"There is no file {path!r}. `analysis size` writes size.csv.")
    found = ledger.read(path) if path.endswith(".jsonl") else _of_table(path)
    if not found:
        raise InputError(f"{path} holds no runs.")
    return found


def _of_table(path: str) -> list[Point]:
    """The points of a table of `analysis size`. Raises `InputError`."""
    found, place = list[Point](), path
    try:
        text = storage.read_bytes(path, ledger.LARGEST).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text))
        for row in reader:
            place = f"{path}, line {reader.line_num}"
            found.append(_point(row))
            place = f"{path}, after line {reader.line_num}"
    except (ValueError, csv.Error) as error:
        raise InputError(
            f"{place}: {ledger.why(error)}. So it is no table of `analysis size`, with the columns "
            f"{', '.join(Point._fields)}. Mend the line, or name another file."
        ) from error
    return found


def _point(row: Mapping[str, Any]) -> Point:
    """The point of a row of texts. Raises `ValueError` if it is none."""
    if missing := [name for name in Point._fields if row.get(name) is None]:
        raise ValueError(f"there is no {', '.join(missing)}")
    of_method = row["setting"].removeprefix(row["method"]).removeprefix(",")  # As in ledgers.
    point = Point(
        row["task"], row["method"], of_method, _number(row["seed"], int),
        _number(row["trained"], int), row["metric"], _number(row["value"], float),
        _number(row["examples"], int),
    )  # fmt: skip
    return ledger.checked(point, may_diverge=True)


def _number(text: str, kind: Callable[[str], Any]) -> Any:
    """The number that a text says; of any other the text, to be refused by name."""
    try:
        return kind(text)
    except ValueError:
        return text


def once(found: Sequence[Point]) -> list[Point]:
    """The points without those that several files have.

    Raises:
      InputError: when they do not say the same of a run.
    """
    runs: dict[tuple[Any, ...], Point] = {}
    for point in found:
        first = runs.setdefault(point[:4], point)
        if abs(first.value - point.value) > ROUNDED:
            raise InputError(
                f"There are two results of {point.task}, {point.method} {point.setting}, seed "
                f"{point.seed}: {first.value:.6f} and {point.value:.6f}. Name the tables of one."
            )
    return list(runs.values())


def differences(found: Sequence[Point]) -> list[tuple[str, float, list[float]]]:
    """How far methods are from full fine-tuning, by what they train.

    Args:
      found: points of several tasks.

    Returns:
      rows of method, median number of trained parameters, and the difference of medians in points
      for each task that has both.
    """
    medians: dict[tuple[str, str, str], float] = {}
    trained: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
    for key in dict.fromkeys((p.task, p.method, p.setting) for p in found):
        same = [p for p in found if (p.task, p.method, p.setting) == key]
        medians[key] = statistics.median(p.value for p in same)
        trained[key[1:]].append(same[0].trained)
    full = {task: value for (task, method, _), value in medians.items() if method == "full"}
    rows = []
    for method, setting in trained:
        changes = [
            100 * (value - full[task])
            for (task, m, s), value in medians.items()
            if (m, s) == (method, setting) and task in full and method != "full"
        ]
        if changes:
            rows.append((method, statistics.median(trained[method, setting]), changes))
    return sorted(rows)


def draw(found: Sequence[Point]) -> Any:
    """The figure: a panel for each task, and one with percentiles over tasks."""
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(point.task for point in found))
    rows = [row for row in differences(found) if len(row[2]) >= FEWEST_TASKS]
    panels = len(tasks) + bool(rows)
    high = -(-panels // WIDE)
    figure = Figure(figsize=(4.3 * min(panels, WIDE), 3.4 * high), layout="constrained")
    all_axes = figure.subplots(high, min(panels, WIDE), squeeze=False).reshape(-1)
    for axes, task in zip(all_axes, tasks, strict=False):
        line_plots.panel(axes, [p for p in found if p.task == task], lambda p: float(p.trained))
        axes.set_xlabel("trained parameters")
    if rows:
        _percentiles(all_axes[len(tasks)], rows)
    for axes in all_axes[panels:]:
        axes.set_visible(False)
    methods = list(dict.fromkeys(point.method for point in found))
    handles = [
        all_axes[0].plot([], [], color=c, marker=m, linestyle=line, label=name.replace("_", "-"))[0]
        for name in methods
        for c, m, line in (line_plots.LOOKS[name],)
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(len(methods), 3 * min(panels, WIDE)),
        frameon=False,
    )
    return figure


def _percentiles(axes: Any, rows: Sequence[tuple[str, float, list[float]]]) -> None:
    """The panel of differences: 20th, 50th and 80th percentile of tasks."""
    for method in dict.fromkeys(row[0] for row in rows):
        colour, marker, line = line_plots.LOOKS[method]
        places = [trained for name, trained, _ in rows if name == method]
        low, middle, top = np.transpose(
            [np.quantile(changes, QUANTILES) for name, _, changes in rows if name == method]
        )
        axes.errorbar(
            places, middle, [middle - low, top - middle], color=colour, marker=marker,
            linestyle=line, capsize=3,
        )  # fmt: skip
    axes.axhline(0, color="#222222", linewidth=0.8)
    line_plots.in_powers_of_ten(axes)
    axes.set_xlabel("trained parameters")
    axes.set_ylabel("points above full fine-tuning")
    counts = sorted({len(changes) for _, _, changes in rows})
    tasks = f"{' or '.join(map(str, counts))} tasks"
    axes.set_title(f"20th, 50th, 80th percentile of {tasks}", fontsize=10)
    axes.grid(color="#dddddd")


def run(parsed: Any, command: str) -> None:
    """Joins tables and draws them. Raises `InputError`."""
    outputs.require(parsed.output_dir, common.pictures_of(NAME))
    found = once([point for path in parsed.tables for point in read(path)])
    found = _drawn(_of_tasks(found, parsed.tasks))
    made = {f"{NAME}.csv": table(found)}
    made |= outputs.pictures(draw(finished(found)), NAME, command)
    print(", ".join(outputs.write(parsed.output_dir, made)))


def _of_tasks(found: Sequence[Point], named: str | None) -> Sequence[Point]:
    """The points of the tasks that `--tasks` names. Raises `InputError` for one without any."""
    if not named:
        return found
    tasks, there = [name.strip() for name in named.split(",")], {point.task for point in found}
    if unknown := [task for task in tasks if task not in there]:
        raise InputError(
            f"--tasks={preview(named)}: there are no runs of {preview(unknown)}. The tables have "
            f"runs of {preview(sorted(there))}."
        )
    return [point for point in found if point.task in tasks]


def _drawn(found: Sequence[Point]) -> list[Point]:
    """The points of methods with a look; says which are left out. Raises `InputError`."""
    if unknown := {p.method for p in found} - line_plots.LOOKS.keys():
        print(f"Left out, as no method of `analysis size`: {printable(', '.join(sorted(unknown)))}")
    drawn = [point for point in found if point.method in line_plots.LOOKS]
    if not drawn:
        raise InputError(
            f"There are no runs of a method that is drawn: {', '.join(line_plots.LOOKS)}."
        )
    return drawn
