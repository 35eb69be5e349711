"""What each layer's adapters are worth: the metric without those of every span of layers.

Houlsby et al. 2019, section 3.6 and Figure 6, left and centre: a trained adapter is evaluated
again, without training, with the adapters of layers FIRST to LAST taken away.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.ops import on_vectors
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.cache import AnalysisCache
from adapter_bert_tf.analysis.layers import span_heatmap
from adapter_bert_tf.analysis.layers.removal import NOTHING, SUBLAYERS, Span, span_outputs, spans
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.span_labeler import SpanLabeler
from adapter_bert_tf.heads.span_labeler import span_logits as start_and_end
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.execute import new_model
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.training.progress import RowProgress
from adapter_bert_tf.training.strategy import set_precision

NAME = "ablation"
FILES = (*common.pictures_of(NAME), f"{NAME}.json")
BOTH = "both"
FIELDS = ("task", "removed", "first_layer", "last_layer", "metric", "value", "change")
# Word pieces of all spans together, in one product; more take memory and save no time.
PIECES_AT_ONCE = 1 << 13
USUAL_LENGTH = 64  # Counted where the graph does not know how long its rows are.


def run(config: RunConfig, options: Mapping[str, str | None]) -> None:
    """Runs the command.

    Args:
      config: of the command.
      options: flags of this analysis, by name.

    Raises:
      InputError: when there is nothing to remove, or something is wrong with the data.
    """
    common.check_analysis(config, NAME, FILES)
    names = _parse_sublayers(options["sublayers"] or BOTH)
    runner = common.runner_of(config)
    plan = common.plan_analysis(runner, config)
    adapter = plan.method.adapter
    if not isinstance(adapter, AdapterConfig):
        raise InputError(
            f"{plan.output.adapter_folder} has no adapters of its own in the layers to take away: "
            f"it was trained by {plan.method.tuning.method}."
        )
    missing = [name for name in names if not set(_sublayers(name)) & set(adapter.sublayers)]
    if missing:
        raise InputError(
            f"--sublayers={missing[0]}: the adapter is {adapter.summary()}, and changes none of "
            "these."
        )
    if plan.actions.dry_run:
        print(f"{plan.output.adapter_folder} can be looked at: {adapter.summary()}.", flush=True)
        return
    with outputs.lock(plan.output.folder, FILES):
        _write(plan, {name: _cached_scores(runner, plan, name) for name in names})


def _parse_sublayers(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if wrong := [name for name in names if name not in (BOTH, *SUBLAYERS)]:
        raise InputError(
            f"--sublayers is of {BOTH}, {', '.join(SUBLAYERS)}, with commas between. Received: "
            f"{wrong[0]!r}"
        )
    return list(dict.fromkeys(names))


def _sublayers(name: str) -> tuple[str, ...]:
    return SUBLAYERS if name == BOTH else (name,)


def _cached_scores(runner: TaskRunner, plan: Plan, name: str) -> dict[str, Any]:
    """The metric with nothing removed and without each span; what was found before is kept."""
    kept = AnalysisCache(plan.output.folder, NAME, common.identity(plan))
    if name not in kept.found:
        kept.add(name, scores(runner, plan, name))
    found: dict[str, Any] = kept.found[name]
    return found


def scores(runner: TaskRunner, plan: Plan, name: str) -> dict[str, Any]:
    """The metric of a dev set without the changes of every span.

    Args:
      runner: of the task's type.
      plan: of a run that evaluates an adapter.
      name: whose changes are removed: `both`, or a sublayer.

    Returns:
      dict of `metric`, its name, `examples`, `whole`, the value with nothing removed, and
      `without`, rows of first layer, last layer, value.
    """
    set_precision(plan.precision)
    model: Any = new_model(runner, plan)
    dev = common.dev_set(plan)
    order = [NOTHING, *spans(len(model.encoder.encoder.blocks))]
    step = tf.function(
        lambda inputs: span_logits(model, inputs, _sublayers(name), order), reduce_retracing=True
    )
    progress = RowProgress(f"{dev.title} without {name}", dev.rows)
    found = []
    for inputs in dev.batches():
        found.append(step(inputs).numpy())
        progress.add(len(inputs["input_mask"]))
    values = [dev.score(dev.answers(logits)) for logits in zip(*found, strict=True)]
    return {
        "metric": dev.metric,
        "examples": len(dev),
        "whole": values[0],
        "without": [[*span, value] for span, value in zip(order[1:], values[1:], strict=True)],
    }


def span_logits(
    model: Any, inputs: dict[str, tf.Tensor], sublayers: tuple[str, ...], order: list[Span]
) -> tf.Tensor:
    """Logits of a `Classifier` or `SpanLabeler` without each span of layers.

    Returns:
      float32 `[spans, batch, outputs]`, or `[spans, batch, 2, seq]` of questions.
    """
    encoder: TaskEncoder = model.encoder
    mask = inputs["input_mask"]
    pieces = (mask.shape[0] or 1) * (mask.shape[1] or USUAL_LENGTH)
    of_spans = isinstance(model, SpanLabeler)
    read = None if of_spans else 1  # Positions of the last block that the head reads.
    found = span_outputs(encoder, inputs, sublayers, read, max(1, PIECES_AT_ONCE // pieces))
    if of_spans:
        return tf.stack([start_and_end(model.head(found[span]), mask) for span in order])
    module = encoder.module()
    pooled = [encoder.encoder.pool(found[span], module) for span in order]
    return tf.stack([on_vectors(model.head, x) for x in pooled])


def _write(plan: Plan, found: dict[str, dict[str, Any]]) -> None:
    """Writes the table and the pictures, and says where they are."""
    task = plan.only_task.name
    rows = [
        [
            task,
            name,
            first + 1,
            last + 1,
            of["metric"],
            f"{value:.6f}",
            f"{value - of['whole']:.6f}",
        ]
        for name, of in found.items()
        for first, last, value in [[-1, -1, of["whole"]], *of["without"]]
    ]
    made = {f"{NAME}.csv": outputs.table(FIELDS, rows)}
    made |= outputs.pictures(span_heatmap.draw(task, found), NAME, command())
    paths = outputs.write(plan.output.folder, made)
    print(_summary(found), flush=True)
    print(f"Without the adapters of each span of layers: {', '.join(paths)}", flush=True)


def _summary(found: dict[str, dict[str, Any]]) -> str:
    """Lines that say the most important: one layer removed, all removed."""
    lines = []
    for name, of in found.items():
        change = {(first, last): value - of["whole"] for first, last, value in of["without"]}
        layers = max(last for _, last in change) + 1
        single = {layer: change[layer, layer] for layer in range(layers)}
        worst = min(single, key=single.__getitem__)
        lines.append(
            f"{of['metric']} {of['whole']:.4f}; without {name} of any one layer at worst "
            f"{single[worst]:+.4f} (layer {worst + 1}), of all {change[0, layers - 1]:+.4f}"
        )
    return "\n".join(lines)
