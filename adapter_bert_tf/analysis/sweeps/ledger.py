"""Rows of runs: JSON lines with task, method, seed, trained, eval and examples.

Such as benchmarks/results/classification.jsonl; `data_sha256` says of which data they are.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.analysis.sweeps.sweep_analysis import Point, share
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.task_runner import TaskData
from adapter_bert_tf.sanitize import parse_json, preview, truncate

# Of what a row calls an evaluation, the metric that counts.
FIRST = ("eval_mcc", "eval_spearman", "eval_accuracy", "f1")
LARGEST = 64 << 20
LARGEST_NUMBER = 2**63  # A float can be made of it, and a picture.


def point(row: Mapping[str, Any], metric: str | None = None) -> Point:
    """The point of a row.

    Args:
      row: of a ledger; its method is `adapters 64`, `top_k 2`, `full`.
      metric: key of `eval`; None for the first of `FIRST` that is there.

    Raises:
      KeyError, ValueError: if it is none.
    """
    found = _part(row, "eval", dict)
    if metric is None and not found.keys() & set(FIRST):
        raise ValueError(f"eval has none of {', '.join(FIRST)}. Received: {preview(found)}")
    metric = metric or min(found.keys() & set(FIRST), key=FIRST.index)
    method, _, setting = _part(row, "method", str).partition(" ")
    value, dev = found[metric], _part(row, "examples", dict)["dev"]
    value = share(metric, value) if type(value) in (int, float) else value
    name = metric.removeprefix("eval_")
    return checked(
        Point(row["task"], method, setting, row["seed"], row["trained"], name, value, dev)
    )


def _part(row: Mapping[str, Any], name: str, kind: type) -> Any:
    """What a row says of a name. Raises `KeyError` or `ValueError`."""
    if not isinstance(row[name], kind):
        what = "text" if kind is str else "an object"
        raise ValueError(f"{name} must be {what}. Received: {preview(row[name])}")
    return row[name]


def checked(point: Point, may_diverge: bool = False) -> Point:
    """A point whose parts are texts and numbers as they should be.

    Args:
      point: as a file says it, its parts of any type.
      may_diverge: whether its value may be NaN.

    Raises:
      ValueError: for a part that is wrong.
    """
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
        if type(number) is not int or not lowest <= number < LARGEST_NUMBER:
            raise ValueError(
                f"{name} must be a whole number, at least {lowest}. Received: {preview(number)}"
            )
    return point


def read(path: str) -> list[Point]:
    """The points of a ledger, each by the first metric that it has.

    Raises:
      InputError: when a line is none of a ledger.
    """
    return [_point(place, row, None) for place, row in _rows(path)]


def of_task(paths: Sequence[str], task: TaskData) -> list[Point]:
    """The points of ledgers that are of a task and of the same data, by its metric.

    Raises:
      InputError: when a file is no ledger.
    """
    found, others = [], 0
    for path in paths:
        if not storage.exists(path) or storage.isdir(path):
            raise InputError(f"--rows: there is no file {path!r}.")
        for place, row in _rows(path):
            same = row.get("data_sha256") == task.record()["data_sha256"]
            if row.get("task") == task.name and same:
                found.append(_point(place, row, task.metric))
            others += row.get("task") == task.name and not same
    unlike = f"; {others} are of other data" if others else ""
    print(f"{len(found)} runs of {task.name} are in {', '.join(paths)}{unlike}.", flush=True)
    return found


def _rows(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields (file and line, row). Raises `InputError`."""
    try:
        texts = storage.read_bytes(path, LARGEST).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise _no_ledger(path, error) from error
    for line, text in enumerate(texts, 1):
        place = f"{path}, line {line}"
        try:
            row = parse_json(text)
        except ValueError as error:
            raise _no_ledger(place, error) from error
        if not isinstance(row, dict):
            raise _no_ledger(place, ValueError(f"a row is an object. Received: {preview(row)}"))
        yield place, row


def _point(place: str, row: Mapping[str, Any], metric: str | None) -> Point:
    try:
        return point(row, metric)
    except (KeyError, ValueError) as error:
        raise _no_ledger(place, error) from error


def _no_ledger(place: str, error: Exception) -> InputError:
    return InputError(
        f"{place}: {why(error)}. So it is no ledger of runs, a JSON object a line with task, "
        "method, seed, trained, eval and examples. Mend the line, or name another file."
    )


def why(error: Exception) -> str:
    """What is wrong with a row, in short."""
    if isinstance(error, KeyError):
        return f"there is no {truncate(str(error), 200)}"
    return truncate(str(error), 300)
