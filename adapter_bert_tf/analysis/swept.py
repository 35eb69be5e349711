"""Analyses that train: a grid of settings with several seeds, each run taken up where it was."""

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from adapter_bert_tf import storage
from adapter_bert_tf.analysis import outputs
from adapter_bert_tf.command.run_flags import RunFlags
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.received import shown
from adapter_bert_tf.run.one_task import Classification
from adapter_bert_tf.run.reused import Reused
from adapter_bert_tf.run.sweep import Sweep

NOT_HERE = ("sweep", "config", "folds", "fold", "do_predict", "do_export", "adapter_dir")


class Point(NamedTuple):
    """One run of a grid.

    Args:
      task: its name.
      method: what is told apart in a picture: `adapters`, `top_k`, a variant.
      setting: what varies, as text.
      seed: of the run.
      trained: number of trained parameters; 0 of a run that diverged.
      metric: name of the task's first metric.
      value: of it on the dev set; NaN of a run that diverged.
      examples: of the dev set.
    """

    task: str
    method: str
    setting: str
    seed: int
    trained: int
    metric: str
    value: float
    examples: int


def flags_of(parsed: Any, analysis: str, names: Sequence[str]) -> RunFlags:
    """The flags of an analysis that trains. Raises `InputError` for those that it decides."""
    flags = RunFlags.of(parsed)
    if taken := [name for name in NOT_HERE if flags.values.get(name) not in (None, False)]:
        raise InputError(
            f"`analysis {analysis}` decides what is trained. Received: "
            f"{', '.join(f'--{name}' for name in taken)}. Leave that out."
        )
    outputs.require(flags.output_dir, names)
    return flags


def points(
    flags: RunFlags,
    grid: Mapping[str, Sequence[Any]],
    method: str,
    folder: str,
    reused: Reused | None = None,
) -> list[Point]:
    """Runs a grid, what is not finished, and returns its runs.

    Args:
      flags: of the command.
      grid: dict from flag to its values.
      method: of all runs.
      folder: below `--output_dir`, for this grid.
      reused: what several grids share.
    """
    place = os.path.join(flags.output_dir, folder)
    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, f"{folder}.yaml")
        storage.write_text(path, json.dumps({name: list(v) for name, v in grid.items()}))
        ours = flags.changed(sweep=path, output_dir=place, do_train=True)
        sweep = Sweep(Classification(), ours, reused or Reused())
    if flags.dry_run:
        print(f"{place}: {len(sweep.runs)} runs of {', '.join(grid)}.", flush=True)
        return []
    sweep.run()
    table = storage.read_bytes(os.path.join(place, "sweep.csv")).decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    data = _data_of(sweep)
    return [_point(row, list(grid), method, *data) for row in rows]


def _data_of(sweep: Sweep) -> tuple[str, str, int]:
    """Name of the task and its metric, and the number of development examples."""
    for _, run_flags in sweep.runs:
        path = os.path.join(run_flags.output_dir, "run.json")
        if storage.exists(path):
            record = json.loads(storage.read_bytes(path))
            metric = next(name for name in record["eval"] if name != "eval_loss")
            return run_flags.task_name.lower(), metric, record["examples"]["dev"]
    raise InputError("Every run diverged. Try a lower --learning_rate.")


def _point(
    row: dict[str, str], names: list[str], method: str, task: str, metric: str, examples: int
) -> Point:
    setting = ",".join(row[name] for name in names)
    trained = int(row.get("trained_parameters") or 0)
    value = float(row.get(metric) or "nan")
    name = metric.removeprefix("eval_")
    return Point(task, method, setting, int(row["seed"]), trained, name, value, examples)


def table(found: Sequence[Point]) -> bytes:
    """The CSV file of points."""
    return outputs.table(
        Point._fields, [[*point[:6], f"{point.value:.6f}", point[7]] for point in found]
    )


def numbers(text: str, name: str, kind: Callable[[str], Any]) -> list[Any]:
    """The numbers of a flag, with commas between. Raises `InputError`."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"--{name} are numbers with commas between. Received: {shown(text)}"
        ) from error
