"""Influence: the norm of each adapter's change, relative to the changed vector.

The mean over the word pieces of a dev set, by layer and sublayer. `ablation` measures what a change
is worth to the task.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.adapters.modules import AdapterModule, Sublayer, WrappedModule
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.analysis import common, outputs, plots
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import Conflict
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.execute import new_model
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.task_runner import TaskRunner

NAME = "influence"
FILES = outputs.file_names(NAME)
FIELDS = ("task", "layer", "sublayer", "relative_change", "pieces")
STYLES = {"attention": ("#1f4e79", "//"), "feed_forward": ("#e0a030", "")}  # Color and hatch.
Changes = dict[tuple[int, str], float]


class ObservedModule(WrappedModule):
    """Measures the changes of sublayers by another module.

    `changes` maps (layer, sublayer) to float32 `[batch, seq]`, the norm of the change of each word
    piece's vector, divided by that of the vector.
    """

    def __init__(self, inner: AdapterModule) -> None:
        super().__init__(inner)
        self.changes: dict[tuple[int, str], tf.Tensor] = {}

    def adapt_sublayer(self, sublayer: Sublayer) -> tf.Tensor:
        before, after = sublayer.unchanged(), self.inner.adapt_sublayer(sublayer)
        lengths = [tf.norm(x, axis=-1) for x in (after - before, before)]
        self.changes[sublayer.layer, sublayer.name] = tf.math.divide_no_nan(*lengths)
        return after


def run(config: RunConfig) -> None:
    """Measures the changes of an adapter over a dev set. Raises `InputError`."""
    common.check_analysis(config, NAME, FILES)
    runner = common.runner_for(config)
    plan = common.plan_analysis(runner, config)
    if plan.method.adapter is None:
        raise Conflict(
            f"{plan.output.adapter_folder} has no modules that change a sublayer: it was trained "
            f"by {plan.method.tuning.method}."
        )
    if plan.actions.dry_run:
        print(f"{plan.output.adapter_folder} can be looked at.", flush=True)
        return
    with outputs.lock(plan.output.folder, FILES):
        changes, pieces = mean_changes(runner, plan)
        if not changes:
            raise Conflict(
                f"{plan.output.adapter_folder} adds nothing to the output of a sublayer: "
                f"{plan.method.adapter.summary()} changes what is inside. Use ablation instead."
            )
        _write(plan, changes, pieces)


def mean_changes(runner: TaskRunner, plan: Plan) -> tuple[Changes, int]:
    """(dict from (layer, sublayer) to the mean relative change, number of word pieces)."""
    model: Any = new_model(runner, plan)
    step = tf.function(
        lambda inputs: relative_changes(model.encoder, inputs), reduce_retracing=True
    )
    totals: Changes = {}
    pieces = 0
    for inputs in common.dev_inputs(runner, plan, f"{plan.only_task.name}, dev"):
        mask = inputs["input_mask"].numpy()
        for position, changes in step(inputs).items():
            batch_total = float((changes.numpy() * mask).sum(dtype=np.float64))
            totals[position] = totals.get(position, 0.0) + batch_total
        pieces += int(mask.sum())
    return {position: total / pieces for position, total in totals.items() if total}, pieces


def relative_changes(
    encoder: TaskEncoder, inputs: dict[str, tf.Tensor]
) -> dict[tuple[int, str], tf.Tensor]:
    """The relative changes of a batch, as in `ObservedModule`; 0 where nothing is changed."""
    module = ObservedModule(encoder.module())
    encoder.encoder(inputs, module=module)
    return module.changes


def _write(plan: Plan, changes: Changes, pieces: int) -> None:
    task = common.task_title(plan)
    rows = []
    for (layer, sublayer), value in sorted(changes.items()):
        print(f"layer {layer + 1}  {sublayer:<12}  {value:.4f}")
        rows.append([task, layer + 1, sublayer, f"{value:.6f}", pieces])
    tables = {f"{NAME}.csv": outputs.csv_table(FIELDS, rows)}
    figure = draw(task, changes, pieces)
    paths = outputs.write(plan.output.folder, tables, figure, NAME, command())
    print(f"Mean relative change by each adapter: {paths}", flush=True)


def draw(task: str, changes: Changes, pieces: int) -> Any:
    """Draws a bar for each adapter; `pieces` is the number of word pieces."""
    layers = sorted({layer for layer, _ in changes})
    sublayers = [name for name in STYLES if any(s == name for _, s in changes)]
    figure = plots.new_figure(max(4.6, 0.55 * len(layers) + 1.8), 3.4)
    axes = figure.subplots()
    width = 0.8 / len(sublayers)
    for number, sublayer in enumerate(sublayers):
        color, hatch = STYLES[sublayer]
        positions = [layer + 1 + (number - (len(sublayers) - 1) / 2) * width for layer in layers]
        axes.bar(
            positions, [100 * changes.get((layer, sublayer), 0.0) for layer in layers], width,
            label=sublayer.replace("_", "-"), color=color, hatch=hatch, edgecolor="white"
        )  # fmt: skip
    axes.set_xticks([layer + 1 for layer in layers])
    axes.set_xlabel("layer")
    axes.set_ylabel("mean change (% of the sublayer's output)")
    plots.set_title(axes, task, f"one adapter, n = {pieces:,} word pieces")
    axes.legend(frameon=False)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)
    return figure
