"""Training curves: loss, learning rate and dev metrics by step."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.report import charts
from adapter_bert_tf.report.folder import Contents
from adapter_bert_tf.report_blocks import Block, Chart, format_number
from adapter_bert_tf.task_types import chosen_type, type_of_details

MAX_POINTS = 400
MAX_LINES = len(charts.SERIES)
Curve = tuple[str, np.ndarray, np.ndarray]  # Name, steps, values.


def blocks(contents: Contents) -> list[Block]:
    """Makes the charts for which `metrics.jsonl` has values."""
    return [*_loss(contents), *_learning_rate(contents), *_dev(contents)]


def curve(contents: Contents, name: str, label: str) -> Curve:
    """Returns the finite values of a name, averaged to at most `MAX_POINTS` points."""
    rows = [(row["step"], row[name]) for row in contents.steps if name in row]
    points = np.array([row for row in rows if np.isfinite(row).all()], float).reshape(-1, 2)
    if len(points) > MAX_POINTS:
        points = np.stack([part.mean(0) for part in np.array_split(points, MAX_POINTS)])
    return label, points[:, 0], points[:, 1]


def sample_caption(contents: Contents, split: str) -> str:
    """Formats the sample for captions, such as `n = 180 dev examples, seed 0`."""
    tasks = contents.data
    n = sum((record.get("examples") or {}).get(split, 0) for record in tasks.values())
    task_count = f" of {len(tasks)} tasks" if len(tasks) > 1 else ""
    caption = f"n = {format_number(n)} {split} examples{task_count}" if n else "n is not recorded"
    return f"{caption}, seed {contents.flags.get('seed', 'not recorded')}"


def _loss(contents: Contents) -> list[Block]:
    curves = [curve(contents, "loss", "training"), curve(contents, "dev/eval_loss", "dev")]
    dev = f" Dev: {sample_caption(contents, 'dev')}." if len(curves[1][1]) else ""
    caption = f"Loss. Training: {sample_caption(contents, 'train')}.{dev}"
    return _chart("loss", curves, f"loss ({_loss_unit(contents)})", caption, "0")


def _loss_unit(contents: Contents) -> str:
    """Returns the unit of the loss, which depends on the type of task."""
    kinds = {type_of_details(details["kind"]) for details in contents.details.values()}
    if len(kinds) > 1:
        return "mean over tasks"
    kind = kinds.pop() if kinds else None
    return (kind or chosen_type(contents.flags)).loss_unit


def _learning_rate(contents: Contents) -> list[Block]:
    curves = [curve(contents, "learning_rate", "learning rate")]
    caption = f"Learning rate: warmup, then to 0. Seed {contents.flags.get('seed', '?')}."
    return _chart("learning-rate", curves, "learning rate (per step)", caption, "0")


def _dev(contents: Contents) -> list[Block]:
    names = dict.fromkeys(name for row in contents.steps for name in row)
    available = [name for name in names if name.startswith("dev/")]
    selected = [f"dev/{name}" for name in contents.chosen_by if f"dev/{name}" in available]
    drawn = selected or [name for name in available if "loss" not in name]
    labels = {name: name.removeprefix("dev/").removeprefix("eval_") for name in drawn[:MAX_LINES]}
    curves = [curve(contents, name, label) for name, label in labels.items()]
    is_percentage = bool(available) and not any("eval_" in name for name in drawn)
    unit = "%" if is_percentage else "from 0 to 1"
    more = f" {len(drawn) - MAX_LINES} more tasks are not shown." if drawn[MAX_LINES:] else ""
    caption = f"Dev set during training: {sample_caption(contents, 'dev')}.{more}"
    axis = curves[0][0].replace("_", " ") if len(curves) == 1 else "metric"
    return _chart("dev-metric", curves, f"{axis} ({unit})", caption)


def _chart(
    name: str, candidates: Sequence[Curve], axis: str, caption: str, lowest: str = ""
) -> list[Block]:
    """Makes a chart of the curves with values, if there are any."""
    curves = [candidate for candidate in candidates if len(candidate[1])]
    if not curves:
        return []

    def paint(axes: Any) -> None:
        for i, (label, steps, values) in enumerate(curves):
            marker = charts.MARKERS[i] if len(steps) <= 40 else None
            axes.plot(steps, values, label=label, **charts.style(i) | {"marker": marker})
        axes.set_xlabel("step")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylabel(axis)
        if lowest:
            ends = np.concatenate([values for _, _, values in curves])
            axes.set_ylim(min(0, ends.min()), 1.08 * ends.max() or 1)
        if len(curves) > 1:
            axes.legend()

    last = "; ".join(f"{label} ends at {format_number(v[-1])}" for label, _, v in curves)
    return [Chart(charts.draw(name, f"{axis} over steps: {last}", paint), caption)]
