"""Ledgers of runs: JSON lines with task, method, seed, trained, eval and examples.

Such as benchmarks/results/classification.jsonl. `data_sha256` identifies the data of a row.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter_bert_tf.analysis import outputs
from adapter_bert_tf.analysis.sweeps.sweep_analysis import Point, to_proportion
from adapter_bert_tf.errors import Damaged, InputError
from adapter_bert_tf.run.task_runner import TaskData
from adapter_bert_tf.sanitize import parse_json, preview

# Metrics in the order of preference, by their keys in `eval`.
METRICS = ("eval_mcc", "eval_spearman", "eval_accuracy", "f1")
MAX_NUMBER = 2**63  # Larger numbers cannot be drawn.


def read(path: str) -> list[Point]:
    """The points of a ledger, each by the first metric that it has. Raises `InputError`."""
    return [_point(location, row, None) for location, row in _rows(path)]


def read_task(paths: Sequence[str], task: TaskData) -> list[Point]:
    """The points with a task's name and data, by the task's metric. Raises `InputError`."""
    points, other_data = [], 0
    for path in paths:
        for location, row in _rows(path):
            if row.get("task") != task.name:
                continue
            if row.get("data_sha256") == task.record()["data_sha256"]:
                points.append(_point(location, row, task.metric))
            else:
                other_data += 1
    rest = f"; {other_data} used other data" if other_data else ""
    print(f"{len(points)} runs of {task.name} are in {', '.join(paths)}{rest}.", flush=True)
    return points


def _rows(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields (file and line, row). Raises `InputError`."""
    for number, line in enumerate(outputs.read_table(path).splitlines(), 1):
        location = f"{path}, line {number}"
        try:
            row = parse_json(line)
            if not isinstance(row, dict):
                raise ValueError(f"a row is an object. Received: {preview(row)}")
        except ValueError as error:
            raise _ledger_error(location, error) from error
        yield location, row


def _point(location: str, row: Mapping[str, Any], metric: str | None) -> Point:
    """The point of a row; None for the first of `METRICS` in its `eval`. Raises `InputError`."""
    try:
        results = _value(row, "eval", dict)
        known = [name for name in METRICS if name in results]
        if metric is None and not known:
            raise ValueError(f"eval has none of {', '.join(METRICS)}. Received: {preview(results)}")
        metric = metric or known[0]
        method, _, setting = _value(row, "method", str).partition(" ")
        value, name = _value(results, metric), metric.removeprefix("eval_")
        value = to_proportion(metric, value) if type(value) in (int, float) else value
        task, seed, trained = (_value(row, key) for key in ("task", "seed", "trained"))
        dev = _value(_value(row, "examples", dict), "dev")
        return check_point(Point(task, method, setting, seed, trained, name, value, dev))
    except ValueError as error:
        raise _ledger_error(location, error) from error


def _value(values: Mapping[str, Any], name: str, kind: type = object) -> Any:
    """A value of a row. Raises `ValueError` if it is missing or of another type."""
    if name not in values:
        raise ValueError(f"there is no {name!r}")
    if not isinstance(values[name], kind):
        type_name = "text" if kind is str else "an object"
        raise ValueError(f"{name} must be {type_name}. Received: {preview(values[name])}")
    return values[name]


def check_point(point: Point, may_diverge: bool = False) -> Point:
    """Returns a point. Raises `ValueError` for a wrong field; NaN may be allowed."""
    for name in ("task", "method", "setting", "metric"):
        if not isinstance(getattr(point, name), str):
            raise ValueError(f"{name} must be text. Received: {preview(getattr(point, name))}")
    value: Any = point.value
    if type(value) not in (int, float) or not (
        math.isfinite(value) or (may_diverge and math.isnan(value))
    ):
        raise ValueError(f"{point.metric} must be a finite number. Received: {preview(value)}")
    for name, lowest in (("seed", 0), ("trained", 0), ("examples", 1)):
        number = getattr(point, name)
        if type(number) is not int or not lowest <= number < MAX_NUMBER:
            raise ValueError(
                f"{name} must be a whole number, at least {lowest}. Received: {preview(number)}"
            )
    return point


def _ledger_error(location: str, error: Exception) -> InputError:
    return Damaged(
        f"{location}: {error}. It must be a ledger of runs, a JSON object a line with task, "
        "method, seed, trained, eval and examples. Correct the line, or give another file."
    )
