"""How fast the methods of `benchmarks.methods` train and answer, beside PEFT's LoRA.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.methods_speed --data_dir=GLUE/MRPC  # what is missing
    python -m benchmarks.methods_speed --table                                # only the tables

Training is of MRPC on MiniLM, batches of 32, at most 128 word pieces, input pipeline included,
without the first steps, in the precision that the row names; each measurement has its own process,
and they take turns. Latency is of one pair from raw text through SavedModels in float32: all models
of a turn are in one process and answer each pair of MRPC's dev set one after the other, in random
order, so other load affects all of them.
"""

import random
import statistics
import tempfile

from benchmarks import ledger, measuring, runner
from benchmarks.methods import METHODS

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "methods_speed",
    page=runner.ROOT / "docs" / "results.md",
    key=lambda row: (row["what"], row["case"], row["precision"], row["turn"]),
)
PEER, BARE, LATENCY, TRAINING = "PEFT, LoRA 8", "base", "latency", "training"
FLOAT32, BFLOAT16 = "float32", "bfloat16_base"
# Method and precision of each measurement of training; the first one is the reference.
TRAINED = [(PEER, FLOAT32), ("LoRA 8", FLOAT32), ("LoRA 8", BFLOAT16)] + [
    (method, FLOAT32) for method in METHODS if method != "LoRA 8"
]
MERGED = ("LoRA 8", "LoRA 24", "(IA)^3")
TURNS, BATCH, LENGTH, WARMUP, STEPS, PAD_TO = 3, 32, 128, 8, 57, 2


def method_config(method):
    """The `ModuleConfig` of a method of `benchmarks.methods`, None for full fine-tuning."""
    import adapter_bert_tf as abt

    flags = dict(flag.removeprefix("--").split("=") for flag in METHODS[method])
    if "tuning" in flags:
        return None
    config = abt.PRESETS[flags.get("adapter", "houlsby")]
    size = flags.get("adapter_size")
    return config.adjusted(size=int(size)) if size else config


def measure(what, case, precision, data_dir):
    """Measures examples/s of a method, or milliseconds of all; runs in a separate process."""
    if what == LATENCY:
        return {"milliseconds": _latencies(data_dir)}
    rate = _peer_rate if case == PEER else _our_rate
    return {"examples_per_second": rate(case, precision, _examples("train", data_dir))}


def _examples(split, data_dir):
    from adapter_bert_tf.data.examples import read_examples
    from adapter_bert_tf.tasks import find_task

    return read_examples(find_task("mrpc"), data_dir, [split])[split]


def _peer_rate(case, precision, examples):
    from benchmarks import peer

    model, tokenizer = peer.load_lora(2)
    rows = peer.tokenize(tokenizer, examples, [int(label) for label in examples.labels])
    dataset = peer.batches(tokenizer, rows, BATCH, shuffle=True)
    iterator = peer.train(model, dataset, WARMUP + STEPS, 1e-3)
    return measuring.step_rate(iterator, BATCH, WARMUP, STEPS)


def _our_rate(case, precision, examples):
    import adapter_bert_tf as abt
    from adapter_bert_tf.data import batches

    base, config = abt.load_base(), method_config(case)
    product = "bfloat16" if precision == BFLOAT16 else None
    model = abt.Classifier(base.new_encoder(config, product_dtype=product), 2)
    base.assign(model.named_variables())
    abt.select_trained(model, abt.Tuning("adapters" if config else "full"))
    features = measuring.features(examples, base, LENGTH)
    dataset = batches.train_batches(features, BATCH, WARMUP + STEPS, 0, LENGTH, PAD_TO)
    return measuring.dataset_rate(model, dataset, BATCH, WARMUP, STEPS)


def _latencies(data_dir):
    """Median milliseconds of a pair by model: the base alone, a method, or `METHOD, merged`."""
    import itertools
    import os

    import tensorflow as tf

    import adapter_bert_tf as abt
    from adapter_bert_tf.serving.export import export_task
    from adapter_bert_tf.serving.merged import merged_model

    model = abt.AdapterModel(abt.load_base())
    with tempfile.TemporaryDirectory() as folder:
        served, names = {}, iter(itertools.count())

        def serve(case, trained, config):
            saved = os.path.join(folder, str(next(names)))
            export_task(saved, trained, config, model.base.vocabulary)
            served[case] = tf.saved_model.load(saved).signatures["serving_default"]

        for case in (BARE, *METHODS):
            config = None if case == BARE else method_config(case)
            tuning = abt.Tuning("adapters" if config else "head")
            trained = model.add_adapter(case, ("0", "1"), config, tuning=tuning, texts=2)
            serve(case, trained, model.config(case))
            if case in MERGED:
                merged = merged_model(trained, model.config(case))
                serve(f"{case}, merged", merged, model.config(case))
    times, order, rng = {case: [] for case in served}, list(served), random.Random(0)
    for first, second in _examples("dev", data_dir).texts():
        inputs = {"text_a": tf.constant([first]), "text_b": tf.constant([second])}
        # In another order each time: the first call for a pair takes longer.
        rng.shuffle(order)
        for case in order:
            signature = served[case]

            def answer(signature=signature, inputs=inputs):
                return signature(**inputs)["probabilities"].numpy()

            times[case] += measuring.time_calls(answer, 0, 1)
    return {case: statistics.median(values[len(values) // 4 :]) for case, values in times.items()}


def run_missing(data_dir, turns):
    """Measures the missing cases, in turns."""
    # Without instructions for it, bfloat16 takes minutes for a step.
    known = [case for case in TRAINED if case[1] == FLOAT32 or measuring.product_dtype()]
    cases = [(TRAINING, *case) for case in known] + [(LATENCY, "all", FLOAT32)]
    missing = LEDGER.missing((*case, turn) for turn in range(turns) for case in cases)
    for number, (what, case, precision, turn) in enumerate(missing, 1):
        row = {"what": what, "case": case, "precision": precision, "turn": turn}
        row |= measuring.run_in_process("benchmarks.methods_speed", what, case, precision, data_dir)
        print(f"{number} of {len(missing)}: {row}", flush=True)
        LEDGER.add("rows", [row | measuring.describe_machine()])


def methods_speed(rows_by_key):
    """Returns Markdown lines: a row for each method, medians of the turns."""
    rates, latencies = {}, {}
    for row in rows_by_key.values():
        if row["what"] == TRAINING:
            case = (row["case"], row["precision"])
            rates.setdefault(case, []).append(row["examples_per_second"])
        else:
            for case, value in row["milliseconds"].items():
                latencies.setdefault(case, []).append(value)
    lines = [
        "| method | training, examples/s | relative to PEFT | a pair, ms | merged, ms |",
        "| --- | --- | --- | --- | --- |",
    ]
    reference = statistics.median(rates.get((PEER, FLOAT32), [float("nan")]))
    for case, precision in [*TRAINED, (BARE, FLOAT32)]:
        name = case if precision == FLOAT32 else f"{case}, `{precision}`"
        values = rates.get((case, precision), [])
        relative = f"{statistics.median(values) / reference:.2f}" if values else ""
        shown = [measuring.spread(latencies.get(key, [])) for key in (case, f"{case}, merged")]
        shown = shown if precision == FLOAT32 else ["", ""]
        if values or any(shown):
            cells = [name, measuring.spread(values), relative, *shown]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def write_tables():
    """Rewrites the table in docs/results.md."""
    LEDGER.write_tables(methods_speed)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of MRPC."),
        turns=(TURNS, "Number of measurements of each case."),
    )
