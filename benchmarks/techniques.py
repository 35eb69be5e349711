"""Effect of each technique: training steps with and without it, in turns, in one process.

    python -m benchmarks.techniques            # measures what is missing
    python -m benchmarks.techniques --table    # only rewrites its page

MiniLM with adapters of size 64, 32 rows of one length; the first steps do not count. Effects that
appear only in whole epochs, such as batch lengths, are in `benchmarks.speed`.
"""

import contextlib
import pathlib
import statistics
from unittest import mock

from benchmarks import ledger, measuring, runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "techniques",
    page=ROOT / "docs" / "performance.md",
    key=lambda row: (row["technique"], row["length"]),
)
LENGTHS = (16, 56, 128)
SIZE, BATCH, WARMUP, COUNTED = 64, 32, 3, 15


def _plain_gelu():
    from adapter_bert_tf.adapters import gradients

    return mock.patch.object(gradients, "IN_TRAINING", {})


def _plain_norm():
    import tf_keras

    from adapter_bert_tf.adapters import base_layers

    def call(layer, inputs, training=None):
        return tf_keras.layers.LayerNormalization.call(layer, inputs)

    return mock.patch.object(base_layers.Norm, "call", call)


def _bits_of_tensorflow():
    """Replaces dropout by TensorFlow's, with 32 random bits a value."""
    import tensorflow as tf

    from adapter_bert_tf.training import dropout

    def dropped(inputs, rate, shape, seed):
        return tf.nn.experimental.stateless_dropout(inputs, rate, seed, noise_shape=shape)

    return mock.patch.object(dropout, "draw_dropout", dropped)


def _all_positions():
    """Makes the last block compute all positions and not only [CLS]."""
    from adapter_bert_tf.adapters.block import AdapterEncoderBlock

    plain = AdapterEncoderBlock.call

    def call(block, inputs, output_range=None, module=None, layer=0, training=None):
        return plain(block, inputs, None, module, layer, training)

    return mock.patch.object(AdapterEncoderBlock, "call", call)


def _keys_of_all():
    """Computes keys and values of all positions for the query of [CLS]."""
    from adapter_bert_tf.adapters.attention import Attention

    def call_for_first(layer, x, everything, mask):
        return layer(x, everything, attention_mask=mask)

    return mock.patch.object(Attention, "call_for_first", call_for_first)


# Patches that remove a technique.
WITHOUT = {
    "gelu's gradient written out": _plain_gelu,
    "LayerNorm's gradient written out": _plain_norm,
    "dropout of 16 bits": _bits_of_tensorflow,
    "the last block computes [CLS] only": _all_positions,
    "its kernels of keys and values go to the one query": _keys_of_all,
}
# Arguments of the encoder that add a technique.
WITH = {
    "`--precision=bfloat16_base`": {"product_dtype": "bfloat16"},
    "`--frozen_layers=3`": {"frozen_layers": 3},
}
TECHNIQUES = (*WITHOUT, *WITH)


def new_step(length, **encoder):
    """Makes a function that runs a training step."""
    import tensorflow as tf

    import adapter_bert_tf as abt
    from adapter_bert_tf.training import loop
    from benchmarks.many_tasks import batch

    base, frozen = abt.load_base(), encoder.get("frozen_layers", 0)
    config = abt.AdapterConfig(SIZE, layers=tuple(range(frozen, base.config.num_layers)))
    model = abt.Classifier(base.new_encoder(config, **encoder), 2)
    base.assign(model.named_variables())
    abt.select_trained(model, abt.Tuning(frozen_layers=frozen))
    loop.compile_model(model, loop.TrainingSettings(1000, BATCH, 1e-3))
    inputs = {name: tf.constant(value) for name, value in batch(BATCH, length).items()}
    labels = inputs["input_word_ids"][:, 0] % 2
    step = tf.function(lambda: model.train_step((inputs, labels)), autograph=False)
    step()  # Traces now, while the patch is active.
    return step


def measure(technique, length):
    """Measures milliseconds of steps with and without; runs in a separate process."""
    length, arguments = int(length), WITH.get(technique)
    steps = {"with": new_step(length, **(arguments or {}))}
    patch = WITHOUT[technique]() if technique in WITHOUT else contextlib.nullcontext()
    with patch:
        steps["without"] = new_step(length)
    results = {name: [] for name in steps}
    for turn in range(WARMUP + COUNTED):
        for name, step in steps.items():
            times = measuring.time_calls(step, 0, 1)
            results[name] += times if turn >= WARMUP else []
    return results


def run_missing():
    """Measures the missing cases."""
    for technique, length in LEDGER.missing([(t, n) for t in TECHNIQUES for n in LENGTHS]):
        row = {"technique": technique, "length": length}
        row |= measuring.run_in_process("benchmarks.techniques", technique, str(length))
        print(technique, length, *map(statistics.median, (row["with"], row["without"])), flush=True)
        LEDGER.add("rows", [row | measuring.describe_machine()])


def techniques(rows_by_key):
    """Returns Markdown lines: medians and ranges, with and without."""
    lines = ["| technique | word pieces | with, ms | without, ms | |", "| --- |" + " --- |" * 4]
    for (technique, length), row in rows_by_key.items():
        cells = [measuring.spread(row[name], 0) for name in ("with", "without")]
        saved = 1 - statistics.median(row["with"]) / statistics.median(row["without"])
        lines.append(f"| {technique} | {length} | {' | '.join(cells)} | {-saved:+.0%} |")
    return lines


def write_tables():
    """Rewrites the table in its page."""
    LEDGER.write_tables(techniques)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(__doc__, run_missing, write_tables)
