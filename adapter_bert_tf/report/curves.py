"""Curves over the steps: loss, learning rate, and the metrics on dev."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.report import charts
from adapter_bert_tf.report.blocks import Block, Chart, number
from adapter_bert_tf.report.folder import Contents

MOST_POINTS = 400
MOST_LINES = len(charts.SERIES)
Curve = tuple[str, np.ndarray, np.ndarray]  # Name, steps, values.


def blocks(contents: Contents) -> list[Block]:
    """The charts that the rows of `metrics.jsonl` have values for."""
    return [
        made
        for made in (_loss(contents), _learning_rate(contents), _dev(contents))
        if made is not None
    ]


def curve(contents: Contents, name: str, called: str) -> Curve:
    """The values of a name, where they are numbers; of very many the means of neighbours."""
    rows = [(row["step"], row[name]) for row in contents.steps if name in row]
    found = np.array([row for row in rows if np.isfinite(row).all()], float).reshape(-1, 2)
    if len(found) > MOST_POINTS:
        found = np.stack([part.mean(0) for part in np.array_split(found, MOST_POINTS)])
    return called, found[:, 0], found[:, 1]


def of_run(contents: Contents, split: str) -> str:
    """`n = 180 dev examples, seed 0`: what a caption must say."""
    tasks = contents.data
    n = sum((of.get("examples") or {}).get(split, 0) for of in tasks.values())
    of_tasks = f" of {len(tasks)} tasks" if len(tasks) > 1 else ""
    said = f"n = {number(n)} {split} examples{of_tasks}" if n else "n is not recorded"
    return f"{said}, seed {contents.flags.get('seed', 'not recorded')}"


def _loss(contents: Contents) -> Chart | None:
    found = [curve(contents, "loss", "training"), curve(contents, "dev/eval_loss", "dev")]
    dev = f" Dev: {of_run(contents, 'dev')}." if len(found[1][1]) else ""
    caption = f"Loss. Training: {of_run(contents, 'train')}.{dev}"
    return _chart("loss", found, f"loss ({_unit(contents)})", caption, "0")


def _unit(contents: Contents) -> str:
    """Of the loss: what it is depends on the kind of task."""
    kinds = {details["kind"] for details in contents.details.values()}
    if len(kinds) > 1:
        return "mean over tasks"
    if contents.flags.get("regression") or kinds == {"scores"}:
        return "squared error, standardized"
    return "cross-entropy, nats"


def _learning_rate(contents: Contents) -> Chart | None:
    found = [curve(contents, "learning_rate", "learning rate")]
    caption = f"Learning rate: warmup, then to 0. Seed {contents.flags.get('seed', '?')}."
    return _chart("learning-rate", found, "learning rate (per step)", caption, "0")


def _dev(contents: Contents) -> Chart | None:
    there = dict.fromkeys(name for row in contents.steps for name in row if name.startswith("dev/"))
    chosen = [f"dev/{name}" for name in contents.chosen_by if f"dev/{name}" in there]
    names = chosen or [name for name in there if "loss" not in name]
    found = [
        curve(contents, n, n.removeprefix("dev/").removeprefix("eval_")) for n in names[:MOST_LINES]
    ]
    of_questions = bool(there) and not any("eval_" in name for name in names)
    unit = "%" if of_questions else "from 0 to 1"
    more = f" {len(names) - MOST_LINES} more tasks are not drawn." if names[MOST_LINES:] else ""
    caption = f"Dev set during training: {of_run(contents, 'dev')}.{more}"
    axis = found[0][0].replace("_", " ") if len(found) == 1 else "metric"
    return _chart("dev-metric", found, f"{axis} ({unit})", caption)


def _chart(
    name: str, found: Sequence[Curve], axis: str, caption: str, lowest: str = ""
) -> Chart | None:
    """A chart of the curves that have values; None if none has."""
    curves = [one for one in found if len(one[1])]
    if not curves:
        return None

    def paint(axes: Any) -> None:
        for i, (called, steps, values) in enumerate(curves):
            few = len(steps) <= 40
            marker = charts.MARKERS[i] if few else None
            axes.plot(steps, values, label=called, **charts.style(i) | {"marker": marker})
        axes.set_xlabel("step")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylabel(axis)
        if lowest:
            ends = np.concatenate([values for _, _, values in curves])
            axes.set_ylim(min(0, ends.min()), 1.08 * ends.max() or 1)
        if len(curves) > 1:
            axes.legend()

    last = "; ".join(f"{called} ends at {number(v[-1])}" for called, _, v in curves)
    return Chart(charts.draw(name, f"{axis} over steps: {last}", paint), caption)
