"""Time of the ablation of all spans of layers, relative to one evaluation of the same rows.

    python -m benchmarks.ablation_speed --adapter_dir=DIR --task_name=MRPC --data_dir=FOLDER

Both alternate in one process and are traced before. The flags are those of `analysis ablation`.
"""

import statistics
import sys
import time

import numpy as np
import tensorflow as tf
from absl import app, flags
from adapter_bert_tf.analysis.dev_set import dev_set

from adapter_bert_tf.analysis import common
from adapter_bert_tf.analysis.layers import ablation
from adapter_bert_tf.analysis.layers.removal import NOTHING, SUBLAYERS, spans
from adapter_bert_tf.cli.absl_flags import config_of, define_flags
from adapter_bert_tf.cli.analyze import define_options
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.run.execute import new_model
from adapter_bert_tf.runners.classification.runner import ClassificationRunner

TURNS = 3


def main(_):
    """Prints the seconds of both and their ratio."""
    runner = ClassificationRunner()
    plan = common.plan_analysis(runner, config_of(flags.FLAGS))
    model, dev = new_model(runner, plan), dev_set(plan)
    order = [NOTHING, *spans(len(model.encoder.encoder.blocks))]
    plain = tf.function(lambda inputs: model(inputs, training=False), reduce_retracing=True)
    every = tf.function(
        lambda inputs: ablation.span_logits(model, inputs, SUBLAYERS, order), reduce_retracing=True
    )
    batches, seconds = list(dev.batches()), {plain: [], every: []}
    for turn in range(TURNS + 1):
        for step, results in seconds.items():
            start = time.monotonic()
            outputs = [step(inputs).numpy() for inputs in batches]
            results += [time.monotonic() - start] if turn else []  # The first turn traces.
            print(f"{turn}: {time.monotonic() - start:.2f} s, {np.shape(outputs[0])}", flush=True)
    one, all_spans = (statistics.median(results) for results in seconds.values())
    print(
        f"{len(dev)} rows: plain {one:.2f} s, {len(order) - 1} spans {all_spans:.2f} s: "
        f"{all_spans / one:.1f} evaluations ({TURNS} turns)"
    )


if __name__ == "__main__":
    define_flags(Command.CLASSIFIER)
    define_options("ablation")
    app.run(main, [*sys.argv, "--do_eval", "--output_dir=unused"])
