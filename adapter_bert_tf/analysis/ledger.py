"""Rows of runs: JSON lines with task, method, seed, trained, eval and examples.

Such as benchmarks/results/classification.jsonl; `data_sha256` says of which data they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.analysis.swept import Point, share
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.received import parse_json, shortened
from adapter_bert_tf.run.kind import TaskData

# Of what a row calls an evaluation, the metric that counts.
FIRST = ("eval_mcc", "eval_spearman", "eval_accuracy", "f1")
LARGEST = 64 << 20


def point(row: Mapping[str, Any], metric: str | None = None) -> Point:
    """The point of a row.

    Args:
      row: of a ledger; its method is `adapters 64`, `top_k 2`, `full`.
      metric: key of `eval`; None for the first of `FIRST` that is there.

    Raises:
      KeyError, TypeError, ValueError, AttributeError: if it is none.
    """
    found = row["eval"]
    metric = metric or min(found.keys() & set(FIRST), key=FIRST.index)
    method, _, setting = row["method"].partition(" ")
    return Point(
        row["task"], method, setting, int(row["seed"]), int(row["trained"]),
        metric.removeprefix("eval_"), share(metric, found[metric]), int(row["examples"]["dev"]),
    )  # fmt: skip


def of_task(paths: Sequence[str], task: TaskData) -> list[Point]:
    """The points of ledgers that are of a task and of the same data, by its metric.

    Raises:
      InputError: when a file is no ledger.
    """
    found, others = [], 0
    for path in paths:
        for row in _rows(path):
            same = row.get("data_sha256") == task.record()["data_sha256"]
            if row.get("task") == task.name and same:
                found.append(_checked(path, row, task.metric))
            others += row.get("task") == task.name and not same
    unlike = f"; {others} are of other data" if others else ""
    print(f"{len(found)} runs of {task.name} are in {', '.join(paths)}{unlike}.", flush=True)
    return found


def _rows(path: str) -> list[dict[str, Any]]:
    if not storage.exists(path) or storage.isdir(path):
        raise InputError(f"--rows: there is no file {path!r}.")
    try:
        rows = list(map(parse_json, storage.read_bytes(path, LARGEST).decode().splitlines()))
    except ValueError as error:
        raise _no_ledger(path, error) from error
    if not all(isinstance(row, dict) for row in rows):
        raise _no_ledger(path, "a line is no object")
    return rows


def _checked(path: str, row: Mapping[str, Any], metric: str) -> Point:
    try:
        return point(row, metric)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _no_ledger(path, error) from error


def _no_ledger(path: str, why: object) -> InputError:
    return InputError(
        f"--rows: {path} is no ledger of runs, JSON lines with task, method, seed, trained, eval, "
        f"examples and data_sha256: {shortened(repr(why), 200)}"
    )
