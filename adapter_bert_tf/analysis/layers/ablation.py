"""Ablation: the metric without the adapters of every span of layers.

Houlsby et al. 2019, section 3.6 and Figure 6, left and centre: a trained adapter is evaluated
again, without training, with the adapters of layers FIRST to LAST removed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.analysis import common, outputs, plots
from adapter_bert_tf.analysis.cache import AnalysisCache
from adapter_bert_tf.analysis.layers.removal import NOTHING, SUBLAYERS, Span, span_outputs, spans
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import Conflict, InputError
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.execute import new_model
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.training.progress import RowProgress

NAME = "ablation"
FILES = (*outputs.file_names(NAME), f"{NAME}.json")
CHOICES = {"both": SUBLAYERS} | {name: (name,) for name in SUBLAYERS}
TITLES = {
    "both": "both adapters",
    "attention": "attention only",
    "feed_forward": "feed-forward only",
}
FIELDS = ("task", "removed", "first_layer", "last_layer", "metric", "value", "change")
# Word pieces of all spans together, in one product; more take memory and save no time.
PIECES_PER_BATCH = 1 << 13
DEFAULT_LENGTH = 64  # Assumed where the graph does not know the length of its rows.


def run(config: RunConfig, options: Mapping[str, str | None]) -> None:
    """Evaluates an adapter without each span, for each of `--sublayers`. Raises `InputError`."""
    common.check_analysis(config, NAME, FILES)
    names = _parse_sublayers(options["sublayers"] or "both")
    runner = common.runner_for(config)
    plan = common.plan_analysis(runner, config)
    adapter = plan.method.adapter
    if adapter is None or not adapter.changed_sublayers:
        raise Conflict(
            f"{plan.output.adapter_folder} has no adapters of its own in the layers: it was "
            f"trained by {plan.method.tuning.method}, and nothing can be removed."
        )
    for name in names:
        if not set(CHOICES[name]) & set(adapter.changed_sublayers):
            raise Conflict(
                f"--sublayers={name}: the adapter changes none of these. It is: {adapter.summary()}"
            )
    if plan.actions.dry_run:
        print(f"{plan.output.adapter_folder} can be looked at: {adapter.summary()}.", flush=True)
        return
    with outputs.lock(plan.output.folder, FILES):
        cache = AnalysisCache(plan.output.folder, NAME, common.identity(plan))
        for name in names:
            if name not in cache.results:
                cache.add(name, compute_scores(runner, plan, name))
        _write(plan, {name: cache.results[name] for name in names})


def _parse_sublayers(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in CHOICES]:
        raise InputError(
            f"--sublayers is of {', '.join(CHOICES)}, separated by commas. Received: {unknown[0]!r}"
        )
    return list(dict.fromkeys(names))


def compute_scores(runner: TaskRunner, plan: Plan, name: str) -> dict[str, Any]:
    """Computes the metric without the changes of every span, for a key of `CHOICES`.

    Returns a dict of `metric`, `examples`, `whole`, the value with nothing removed, and `without`,
    rows of (first layer, last layer, value).
    """
    model: Any = new_model(runner, plan)
    dev = runner.dev_set(plan)
    order = [NOTHING, *spans(len(model.encoder.encoder.blocks))]
    step = tf.function(
        lambda inputs: span_logits(model, inputs, CHOICES[name], order), reduce_retracing=True
    )
    progress = RowProgress(f"{dev.title} without {name}", dev.rows)
    batches = []
    for inputs in dev.batches():
        batches.append(step(inputs).numpy())
        progress.add(len(inputs["input_mask"]))
    answers: list[Any] = [dev.answers(logits) for logits in zip(*batches, strict=True)]
    whole, *values = map(dev.score, answers)
    return {
        "metric": dev.metric,
        "examples": len(dev),
        "whole": whole,
        "without": [[*span, value] for span, value in zip(order[1:], values, strict=True)],
    }


def span_logits(
    model: Any, inputs: dict[str, tf.Tensor], sublayers: tuple[str, ...], order: list[Span]
) -> tf.Tensor:
    """Logits without each span of layers, float32 `[spans, batch, outputs or (2, seq)]`."""
    encoder: TaskEncoder = model.encoder
    mask = inputs["input_mask"]
    pieces = (mask.shape[0] or 1) * (mask.shape[1] or DEFAULT_LENGTH)
    # Positions of the last block that the head reads: of classes only [CLS].
    output_range = None if "pooler" in model.unused else 1
    spans_per_batch = max(1, PIECES_PER_BATCH // pieces)
    states = span_outputs(encoder, inputs, sublayers, output_range, spans_per_batch)
    return tf.stack([_logits_from(model, inputs, states[span]) for span in order])


class _WithStates:
    """A model whose encoder returns what is known."""

    def __init__(self, model: Any, outputs: dict[str, tf.Tensor]) -> None:
        self._model = model
        self.encoder = lambda inputs, **options: outputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def _logits_from(model: Any, inputs: dict[str, tf.Tensor], states: tf.Tensor) -> tf.Tensor:
    """What a model computes from the last block's output, `[batch, range or seq, hidden]`."""
    outputs = {"sequence_output": states}
    if "pooler" not in model.unused:
        outputs["pooled_output"] = model.encoder.encoder.pool(states, model.encoder.module())
    return type(model).call(_WithStates(model, outputs), inputs, training=False)


def _write(plan: Plan, scores: dict[str, dict[str, Any]]) -> None:
    """Writes the table and the pictures, and prints the main results."""
    task = common.task_title(plan)
    rows = []
    for name, result in scores.items():
        metric, whole = result["metric"], result["whole"]
        for first, last, value in [[-1, -1, whole], *result["without"]]:
            change = f"{value - whole:.6f}"
            rows.append([task, name, first + 1, last + 1, metric, f"{value:.6f}", change])
        print(_summary(name, result), flush=True)
    tables = {f"{NAME}.csv": outputs.csv_table(FIELDS, rows)}
    figure = draw(task, scores)
    paths = outputs.write(plan.output.folder, tables, figure, NAME, command())
    print(f"Without the adapters of each span of layers: {paths}", flush=True)


def _summary(name: str, result: dict[str, Any]) -> str:
    """Formats the main results: one layer removed, all removed."""
    changes = {(first, last): value - result["whole"] for first, last, value in result["without"]}
    layers = max(last for _, last in changes) + 1
    worst = min(range(layers), key=lambda layer: changes[layer, layer])
    return (
        f"{result['metric']} {result['whole']:.4f}; without {name} of any one layer at worst "
        f"{changes[worst, worst]:+.4f} (layer {worst + 1}), of all {changes[0, layers - 1]:+.4f}"
    )


def change_matrix(without: list[list[Any]], whole: float) -> np.ndarray:
    """Changes of a metric in points, `[first, last]`, from rows of (first, last, value)."""
    layers = max(int(last) for _, last, _ in without) + 1
    changes = np.full((layers, layers), np.nan)
    for first, last, value in without:
        changes[first, last] = 100 * (value - whole)
    return changes


def draw(task: str, scores: Mapping[str, Mapping[str, Any]]) -> Any:
    """Draws a panel for each result of `ablation.compute_scores`, with one color scale."""
    matrices = {name: change_matrix(r["without"], r["whole"]) for name, r in scores.items()}
    layers = len(next(iter(matrices.values())))
    side = max(2.6, 0.55 * layers + 0.6)
    figure = plots.new_figure(max(side * len(matrices) + 1.3, 5.8), side + 0.9)
    all_axes = figure.subplots(1, len(matrices), squeeze=False)[0]
    lowest = min(min(float(np.nanmin(changes)) for changes in matrices.values()), -0.1)
    highest = max(max(float(np.nanmax(changes)) for changes in matrices.values()), 0.0)
    for axes, (name, changes) in zip(all_axes, matrices.items(), strict=True):
        image = _draw_panel(axes, changes, lowest, highest)
        axes.set_title(TITLES[name], fontsize=10)
    result = next(iter(scores.values()))
    figure.suptitle(
        f"{printable(task)[:40]}: {result['metric']} {100 * result['whole']:.1f} "
        f"(n = {result['examples']:,}, one adapter of one seed)\n"
        "and its change without the adapters of a span of layers",
        fontsize=11,
        parse_math=False,
    )
    figure.colorbar(image, ax=list(all_axes), label=f"change of {result['metric']} (points)")
    return figure


def _draw_panel(axes: Any, changes: np.ndarray, lowest: float, highest: float) -> Any:
    layers = len(changes)
    format_change = _format_change if layers <= 12 else lambda change: ""  # No room for numbers.
    image = plots.draw_cells(axes, changes, lowest, highest, format_change)
    names = [str(layer + 1) for layer in range(layers)]
    axes.set_xticks(range(layers), names)
    axes.set_yticks(range(layers), names)
    axes.set_xlabel("last layer removed")
    axes.set_ylabel("first layer removed")
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(False)
    return image


def _format_change(change: float) -> str:
    if np.isnan(change):
        return ""
    return f"{change:+.1f}" if abs(change) >= 0.05 else "0.0"
