"""Whom a fusion listens to: mean attention on each member, by layer (Pfeiffer et al. 2021, fig. 4).

The mean is over all word pieces of the dev set, each counted once.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from adapter_bert_tf.adapters.methods.fusion import FusionModule
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.modules import Sublayer
from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.composition import heat_map
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.execute import new_model
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.planning import plan_run
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.training.strategy import set_precision

NAME = "fusion_attention"
FILES = common.pictures_of(NAME)
FIELDS = ("target", "layer", "sublayer", "member", "attention")

Inputs = Mapping[str, tf.Tensor]
Shares = dict[tuple[int, str], np.ndarray]


def run(config: RunConfig) -> None:
    """Writes the mean attention over a dev set as CSV and as a heat map.

    Args:
      config: of the command.

    Raises:
      InputError: when the adapter is no fusion, or something is wrong with the data.
    """
    common.check_analysis(config, "fusion", FILES)
    runner = common.runner_of(config)
    plan = plan_run(runner, config, RunCache())
    fusion = plan.method.adapter
    if not isinstance(fusion, FusionConfig) or plan.saved is None:
        raise InputError(
            f"{plan.output.adapter_folder} is no fusion: there is no attention over members in it. "
            "Name the adapter directory of a run with --tuning=fusion."
        )
    if plan.actions.dry_run:
        print(f"{plan.output.adapter_folder} can be looked at: {fusion.summary()}.", flush=True)
        return
    shares = mean_attention(runner, plan, fusion)
    target, folder = plan.only_task.name, plan.output.folder
    with outputs.lock(folder, FILES):
        name, table = f"{NAME}.csv", _table(target, fusion, shares)
        panels = heat_map.panels(name, table)
        made = heat_map.pictures(NAME, panels, command())
        paths = outputs.write(folder, {name: table} | made)
    print(f"Mean attention on each member: {', '.join(paths)}", flush=True)


def mean_attention(runner: TaskRunner, plan: Plan, config: FusionConfig) -> Shares:
    """Dict from (layer, sublayer) to the mean share of each member, float64 `[members]`."""
    set_precision(plan.precision)
    model = new_model(runner, plan)
    values = {n: v for n, v in model.named_variables().items() if not n.startswith("bert/")}
    base = getattr(model.encoder, "encoder", model.encoder)
    step = tf.function(lambda inputs: sums(base, config, values, inputs), reduce_retracing=True)
    total: dict[tuple[int, str], Any] = {}
    pieces = 0.0
    for inputs in common.counted(runner, plan, f"{plan.only_task.name}, dev"):
        found, here = step(inputs)
        for key, value in zip(_places(config, plan), found, strict=True):
            total[key] = total.get(key, 0.0) + value.numpy().astype(np.float64)
        pieces += float(here)
    return {key: value / pieces for key, value in total.items()}


def _places(config: FusionConfig, plan: Plan) -> list[tuple[int, str]]:
    layers = config.member.layer_indices(plan.base.config.num_layers)
    order = [s for s in ("attention", "feed_forward") if s in config.member.sublayers]
    return [(layer, sublayer) for layer in layers for sublayer in order]


def sums(
    encoder: Any, config: FusionConfig, values: Mapping[str, Any], inputs: Inputs
) -> tuple[list[tf.Tensor], tf.Tensor]:
    """The members' shares, summed over the word pieces of a batch; and how many these are.

    Args:
      encoder: `AdapterBertEncoder` of the base.
      config: `FusionConfig`.
      values: dict from common name to variable, of the fusion and its members.
      inputs: dict of int32 `[batch, seq]`.

    Returns:
      float32 `[members]` for each place, in the order in which they are computed; and a scalar.
    """
    mask = tf.cast(inputs["input_mask"], tf.float32)
    found: list[tf.Tensor] = []

    def observe(sublayer: Sublayer, shares: tf.Tensor) -> None:
        found.append(tf.einsum("bs,bsn->n", mask, shares))

    encoder(inputs, module=FusionModule(config, values, observe=observe))
    return found, tf.reduce_sum(mask)


def _table(target: str, config: FusionConfig, shares: Shares) -> bytes:
    return outputs.table(
        FIELDS,
        [
            [target, layer, sublayer, member, f"{mean:.6f}"]
            for (layer, sublayer), means in shares.items()
            for member, mean in zip(config.members, means, strict=True)
        ],
    )
