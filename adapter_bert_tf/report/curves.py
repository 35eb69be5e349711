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


def sample_caption(contents: Contents, split: str, most: int | None = None) -> str:
    """Formats the sample for captions, such as `n = 180 dev examples, seed 0`.

    `most`: how many examples of each task are in the sample, if not all.
    """
    tasks = contents.data
    counts = [(record.get("examples") or {}).get(split, 0) for record in tasks.values()]
    n = sum(count if most is None else min(count, most) for count in counts)
    task_count = f" of {len(tasks)} tasks" if len(tasks) > 1 else ""
    subset = " (a subset)" if n < sum(counts) else ""
    caption = f"n = {format_number(n)} {split} examples{task_count}{subset}"
    return f"{caption if n else 'n is not recorded'}, seed {contents.flags.get('seed', '?')}"


def _dev_caption(contents: Contents) -> str:
    return sample_caption(contents, "dev", contents.flags.get("max_eval_examples"))


def _loss(contents: Contents) -> list[Block]:
    training, dev = curve(contents, "loss", "training"), curve(contents, "dev/eval_loss", "dev")
    unit, dev_unit = _loss_units(contents)
    caption = f"Training: {sample_caption(contents, 'train')}."
    dev_caption = f"Dev: {_dev_caption(contents)}."
    if unit != dev_unit:
        return [
            *_chart("loss", [training], f"loss ({unit})", f"Loss. {caption}", "0"),
            *_chart("dev-loss", [dev], f"loss ({dev_unit})", f"Dev loss. {dev_caption}", "0"),
        ]
    both = f"{caption} {dev_caption}" if len(dev[1]) else caption
    return _chart("loss", [training, dev], f"loss ({unit})", f"Loss. {both}", "0")


def _loss_units(contents: Contents) -> tuple[str, str]:
    """Returns the units of the losses of training and of evaluations, by the type of task."""
    kinds = {type_of_details(details["kind"]) for details in contents.details.values()}
    if len(kinds) > 1:
        return "mean over tasks", "mean over tasks"
    kind = (kinds.pop() if kinds else None) or chosen_type(contents.flags)
    return kind.loss_unit, kind.dev_loss_unit or kind.loss_unit


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
    unit = "%" if is_percentage else charts.metric_range(drawn)
    more = f" {len(drawn) - MAX_LINES} more tasks are not shown." if drawn[MAX_LINES:] else ""
    caption = f"Dev set during training: {_dev_caption(contents)}.{more}"
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
