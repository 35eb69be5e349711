"""How much each adapter changes: the norm of its change, relative to what it changes.

The mean over the word pieces of a dev set, by layer and sublayer. An adapter that changes little
can do little; what a change is worth to the task, `ablation` says.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.adapters.modules import AdapterModule, Sublayer, WrappedModule
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.execute import new_model
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.training.strategy import set_precision

NAME = "influence"
FILES = common.pictures_of(NAME)
FIELDS = ("task", "layer", "sublayer", "relative_change", "pieces")
LOOKS = {"attention": ("#1f4e79", "//"), "feed_forward": ("#e0a030", "")}  # Colour and hatch.
Changes = dict[tuple[int, str], float]


class Observed(WrappedModule):
    """A module whose changes of sublayers are measured.

    Args:
      inner: `AdapterModule`.

    Attributes:
      changes: dict from (layer, sublayer) to float32 `[batch, seq]`, the norm of the change of each
        word piece's vector, divided by that of the vector.
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
    """Runs the command.

    Args:
      config: of the command.

    Raises:
      InputError: when nothing changes a sublayer, or something is wrong with the data.
    """
    common.check_analysis(config, NAME, FILES)
    runner = common.runner_of(config)
    plan = common.plan_analysis(runner, config)
    if plan.method.adapter is None:
        raise InputError(
            f"{plan.output.adapter_folder} changes no sublayer beside the base: it was trained by "
            f"{plan.method.tuning.method}."
        )
    if plan.actions.dry_run:
        print(f"{plan.output.adapter_folder} can be looked at.", flush=True)
        return
    with outputs.lock(plan.output.folder, FILES):
        _write(plan, *mean_changes(runner, plan))


def mean_changes(runner: TaskRunner, plan: Plan) -> tuple[Changes, int]:
    """(dict from (layer, sublayer) to the mean relative change, number of word pieces)."""
    set_precision(plan.precision)
    model: Any = new_model(runner, plan)
    step = tf.function(lambda inputs: relative(model.encoder, inputs), reduce_retracing=True)
    total: Changes = {}
    pieces = 0
    for inputs in common.counted(runner, plan, f"{plan.only_task.name}, dev"):
        mask = inputs["input_mask"].numpy()
        for place, found in step(inputs).items():
            part = float((found.numpy() * mask).sum(dtype=np.float64))
            total[place] = total.get(place, 0.0) + part
        pieces += int(mask.sum())
    return {place: value / pieces for place, value in total.items() if value}, pieces


def relative(
    encoder: TaskEncoder, inputs: dict[str, tf.Tensor]
) -> dict[tuple[int, str], tf.Tensor]:
    """The relative changes of a batch, as in `Observed`; 0 where nothing is changed."""
    module = Observed(encoder.module())
    encoder.encoder(inputs, module=module)
    return module.changes


def _write(plan: Plan, changes: Changes, pieces: int) -> None:
    task, folder = plan.only_task.name, plan.output.folder
    rows = []
    for (layer, sublayer), value in sorted(changes.items()):
        print(f"layer {layer + 1}  {sublayer:<12}  {value:.4f}")
        rows.append([task, layer + 1, sublayer, f"{value:.6f}", pieces])
    made = {f"{NAME}.csv": outputs.table(FIELDS, rows)}
    figure = draw(task, changes, pieces)
    paths = outputs.write(folder, made | outputs.pictures(figure, NAME, command()))
    print(f"Mean relative change by each adapter: {', '.join(paths)}", flush=True)


def draw(task: str, changes: Changes, pieces: int) -> Any:
    """The figure: a bar for each adapter.

    Args:
      task: its name.
      changes: of `mean_changes`.
      pieces: number of word pieces.
    """
    from matplotlib.figure import Figure

    layers = sorted({layer for layer, _ in changes})
    sublayers = [name for name in LOOKS if any(s == name for _, s in changes)]
    figure = Figure(figsize=(max(4.6, 0.55 * len(layers) + 1.8), 3.4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(sublayers)
    for number, sublayer in enumerate(sublayers):
        colour, hatch = LOOKS[sublayer]
        places = [layer + 1 + (number - (len(sublayers) - 1) / 2) * width for layer in layers]
        axes.bar(
            places, [100 * changes.get((layer, sublayer), 0.0) for layer in layers], width,
            label=sublayer.replace("_", "-"), color=colour, hatch=hatch, edgecolor="white",
        )  # fmt: skip
    axes.set_xticks([layer + 1 for layer in layers])
    axes.set_xlabel("layer")
    axes.set_ylabel("mean change (% of the sublayer's output)")
    axes.set_title(
        f"{printable(task)[:40]} (one adapter, n = {pieces:,} word pieces)",
        fontsize=10,
        parse_math=False,
    )
    axes.legend(frameon=False)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)
    return figure
