"""Mean attention of a fusion on each member, by layer (Pfeiffer et al. 2021, Figure 4).

The mean is over all word pieces of the dev set.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.adapters.methods.fusion import FusionModule
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.modules import Sublayer
from adapter_bert_tf.adapters.registry import of_kind
from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.composition import heat_map
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.execute import new_model
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.task_runner import TaskRunner

NAME = "fusion_attention"
FILES = outputs.file_names(NAME)
FIELDS = ("target", "layer", "sublayer", "member", "attention")

MeanAttention = dict[tuple[int, str], np.ndarray]


def run(config: RunConfig) -> None:
    """Writes the mean attention over a dev set as CSV and as a heat map. Raises `InputError`."""
    common.check_analysis(config, "fusion", FILES)
    runner = common.runner_for(config)
    plan = common.plan_analysis(runner, config)
    fusion = of_kind(plan.method.adapter, FusionConfig)
    if fusion is None:
        raise InputError(
            f"{plan.output.adapter_folder} is not a fusion and has no attention over members. Give "
            "the adapter directory of a run with --tuning=fusion."
        )
    if plan.actions.dry_run:
        print(f"{plan.output.adapter_folder} can be looked at: {fusion.summary()}.", flush=True)
        return
    attention = mean_attention(runner, plan, fusion)
    folder = plan.output.folder
    with outputs.lock(folder, FILES):
        table = _table(common.task_title(plan), fusion, attention)
        figure = heat_map.draw(heat_map.parse_panels(f"{NAME}.csv", table.decode()))
        paths = outputs.write(folder, {f"{NAME}.csv": table}, figure, NAME, command())
    print(f"Mean attention on each member: {paths}", flush=True)


def mean_attention(runner: TaskRunner, plan: Plan, config: FusionConfig) -> MeanAttention:
    """Dict from (layer, sublayer) to the mean attention on each member, float64 `[members]`."""
    model = new_model(runner, plan)
    values = {n: v for n, v in model.named_variables().items() if not n.startswith("bert/")}
    base = getattr(model.encoder, "encoder", model.encoder)
    step = tf.function(
        lambda inputs: sum_attention(base, config, values, inputs), reduce_retracing=True
    )
    totals: dict[tuple[int, str], Any] = {}
    word_pieces = 0.0
    for inputs in common.dev_inputs(runner, plan, f"{plan.only_task.name}, dev"):
        sums, count = step(inputs)
        for position, value in sums.items():
            totals[position] = totals.get(position, 0.0) + value.numpy().astype(np.float64)
        word_pieces += float(count)
    return {position: total / word_pieces for position, total in totals.items()}


def sum_attention(
    encoder: Any, config: FusionConfig, values: Mapping[str, Any], inputs: Mapping[str, tf.Tensor]
) -> tuple[dict[tuple[int, str], tf.Tensor], tf.Tensor]:
    """Attention on `[members]` by (layer, sublayer), summed over word pieces; their number."""
    mask = tf.cast(inputs["input_mask"], tf.float32)
    sums: dict[tuple[int, str], tf.Tensor] = {}

    def observe(sublayer: Sublayer, attention: tf.Tensor) -> None:
        sums[sublayer.layer, sublayer.name] = tf.einsum("bs,bsn->n", mask, attention)

    encoder(inputs, module=FusionModule(config, values, observe=observe))
    return sums, tf.reduce_sum(mask)


def _table(target: str, config: FusionConfig, attention: MeanAttention) -> bytes:
    rows = [
        [target, layer, sublayer, member, f"{mean:.6f}"]
        for (layer, sublayer), means in attention.items()
        for member, mean in zip(config.members, means, strict=True)
    ]
    return outputs.csv_table(FIELDS, rows)
