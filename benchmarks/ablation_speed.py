"""The ablation of every span of layers against one plain evaluation, on the same rows.

    python -m benchmarks.ablation_speed --adapter_dir=DIR --task_name=MRPC --data_dir=FOLDER

Alternating, in one process, each traced before; the command line is that of `analysis ablation`.
"""

import statistics
import sys
import time

import numpy as np
import tensorflow as tf
from absl import app, flags

from adapter_bert_tf.analysis import ablation, looking, options
from adapter_bert_tf.analysis.removal import NOTHING, SUBLAYERS, spans
from adapter_bert_tf.command.definitions import define_flags
from adapter_bert_tf.command.row import Command
from adapter_bert_tf.command.run_flags import RunFlags
from adapter_bert_tf.run.job import new_model
from adapter_bert_tf.run.one_task import Classification

TURNS = 3


def main(_):
    """Prints the seconds of both, and their ratio."""
    plan = looking.plan_to_look(Classification(), RunFlags.of(flags.FLAGS))
    model, dev = new_model(plan), looking.dev_set(plan)
    order = [NOTHING, *spans(len(model.encoder.encoder.blocks))]
    plain = tf.function(lambda inputs: model(inputs, training=False), reduce_retracing=True)
    every = tf.function(
        lambda inputs: ablation.span_logits(model, inputs, SUBLAYERS, order), reduce_retracing=True
    )
    batches, seconds = list(dev.batches()), {plain: [], every: []}
    for turn in range(TURNS + 1):
        for step, found in seconds.items():
            began = time.monotonic()
            outputs = [step(inputs).numpy() for inputs in batches]
            found += [time.monotonic() - began] if turn else []  # The first turn traces.
            print(f"{turn}: {time.monotonic() - began:.2f} s, {np.shape(outputs[0])}", flush=True)
    one, all_spans = (statistics.median(found) for found in seconds.values())
    print(
        f"{len(dev)} rows: plain {one:.2f} s, {len(order) - 1} spans {all_spans:.2f} s: "
        f"{all_spans / one:.1f} evaluations ({TURNS} turns)"
    )


if __name__ == "__main__":
    define_flags(Command.CLASSIFIER)
    options.define("ablation")
    app.run(main, [*sys.argv, "--do_eval", "--output_dir=unused"])
