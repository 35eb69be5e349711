"""Start time, memory, latency, and the share of matrix products in a training step.

    python -m benchmarks.costs --data_dir=GLUE/MRPC      # measures what is missing
    python -m benchmarks.costs --table                   # only rewrites its page

- `start`: seconds from the start of `run_classifier.py` on MRPC to the end of its first step.
- `step N`: a step of MiniLM with adapters of size 64, batch 32, length N, in milliseconds; the
  floating-point operations of its products, and the rate of one such product alone.
- `20 tasks`: milliseconds for one sentence pair through 20 adapters, with one call and with 20; the
  same with the lower half of the layers frozen and shared.
- `latency`, `latency of the peer`: median milliseconds from two raw texts to an answer, one pair of
  MRPC's dev set after the other: a SavedModel, and the PyTorch library `adapters`.
- `memory adapters`, `memory full`: peak memory that two steps of a BERT-base with random weights
  add to their process, batch 32, length 128.
"""

import dataclasses
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks import ledger, measuring, predicting, runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "costs",
    page=ROOT / "docs" / "performance.md",
    key=lambda row: (row["what"], row["turn"]),
)
STEPS = {"step 56": 56, "step 128": 128}
MEMORY = {"memory adapters": "adapters", "memory full": "full"}
ANSWERS, TASKS = "20 tasks", 20
UPPER_ANSWERS, FROZEN = "20 tasks, lower half frozen", 3
LATENCY, LATENCY_OF_PEER = "latency", "latency of the peer"
WHATS = ("start", *STEPS, ANSWERS, UPPER_ANSWERS, LATENCY, LATENCY_OF_PEER, *MEMORY)
PAIR = ("The company said its profit rose by a third.", "Profit grew, the company said.")
BERT_BASE = {
    "hidden_size": 768,
    "num_layers": 12,
    "num_attention_heads": 12,
    "inner_dim": 3072,
}
TURNS, BATCH, SIZE, LENGTH, WARMUP, COUNTED = 3, 32, 64, 128, 4, 20


def needed(sizes, length, batch=BATCH, size=SIZE):
    """Counts the operations of all products of a step with adapters, forward and backward.

    No product needs the gradient of a frozen kernel. The last block has one query a row, to which
    the kernels of keys and values go.

    Args:
      sizes: `BertConfig`.
      length: of all rows.
      batch: rows.
      size: of the bottlenecks.
    """
    hidden, inner, pieces = sizes.hidden_size, sizes.inner_dim, batch * length

    def dense(rows):  # Query and output, the feed-forward sublayer; adapters, thrice.
        return 2 * rows * (2 * hidden**2 + 2 * hidden * inner) * 2 + 2 * rows * hidden * size * 12

    def keys(rows):  # And values.
        return 2 * rows * 2 * hidden**2 * 2

    def attention(queries, width):  # Two products forward, four back.
        return 2 * 6 * batch * queries * length * width

    full = dense(pieces) + keys(pieces) + attention(length, hidden)
    last = dense(batch) + keys(batch) + attention(1, sizes.num_attention_heads * hidden)
    return (sizes.num_layers - 1) * full + last


def measure(label, data_dir):
    """Measures one case; runs in its own process."""
    if label == "start":
        return {"seconds": _start(data_dir)}
    if label in (ANSWERS, UPPER_ANSWERS):
        return _answers(FROZEN if label == UPPER_ANSWERS else 0)
    if label in (LATENCY, LATENCY_OF_PEER):
        pairs = predicting.dev_set("mrpc", data_dir).texts()
        return {"milliseconds": (_latency if label == LATENCY else _latency_of_peer)(pairs)}
    return _memory(MEMORY[label]) if label in MEMORY else _step(STEPS[label])


def _start(data_dir):
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            "run_classifier.py",
            "--task_name=MRPC",
            f"--data_dir={data_dir}",
            "--do_train",
        ]
        start = time.time()
        subprocess.run(
            [sys.executable, *arguments, "--max_train_examples=3668", "--num_train_epochs=0.01",
             "--train_batch_size=32", "--noreport", f"--output_dir={folder}"],
            cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": "."},
        )  # fmt: skip
        return os.path.getmtime(f"{folder}/metrics.jsonl") - start


def _latency(pairs):
    import tensorflow as tf

    import adapter_bert_tf as abt
    from adapter_bert_tf.serving.export import export_task

    model = abt.AdapterModel(abt.load_base())
    trained = model.add_adapter("task", ("0", "1"), abt.AdapterConfig(SIZE), texts=2)
    with tempfile.TemporaryDirectory() as folder:
        export_task(f"{folder}/saved", trained, model.config("task"), model.base.vocabulary)
        served = tf.saved_model.load(f"{folder}/saved").signatures["serving_default"]

    def answer(first, second):
        answered = served(text_a=tf.constant([first]), text_b=tf.constant([second]))
        return answered["probabilities"].numpy()

    return _median_of(answer, pairs)


def _latency_of_peer(pairs):
    from benchmarks import peer

    return _median_of(peer.pair_answerer(SIZE), pairs)


def _median_of(answer, pairs):
    """Returns the median milliseconds of a prediction, without the first quarter."""
    left, first = iter(pairs), len(pairs) // 4
    times = measuring.time_calls(lambda: answer(*next(left)), first, len(pairs) - first)
    return statistics.median(times)


def _answers(frozen):
    import adapter_bert_tf as abt

    base = abt.load_base()
    model = abt.AdapterModel(base)
    config = abt.AdapterConfig(SIZE, layers=tuple(range(frozen, base.config.num_layers)))
    tuning = abt.Tuning(frozen_layers=frozen)
    names = [f"task{i}" for i in range(TASKS)]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            model.add_adapter(name, ("0", "1"), config, tuning=tuning, texts=2)
            model.save_adapter(name, f"{folder}/{name}")
        predictor = abt.Predictor({name: f"{folder}/{name}" for name in names})
    texts, others = ([text] * TASKS for text in PAIR)
    at_once = _milliseconds(lambda: predictor(texts, others, adapter=names))
    apart = _milliseconds(lambda: [predictor(*PAIR, adapter=name) for name in names])
    return {"at_once": at_once, "apart": apart}


def _milliseconds(call):
    """Returns the median time of a call, without the first ones."""
    return statistics.median(measuring.time_calls(call, WARMUP, COUNTED))


def _model(base, method):
    import adapter_bert_tf as abt

    config = abt.AdapterConfig(bottleneck_size=SIZE) if method == "adapters" else None
    model = abt.Classifier(base.build_encoder(config), 2)
    abt.select_trained(model, abt.Tuning(method))
    return model


def _batches(vocab_size, length, count):
    import numpy as np
    import tensorflow as tf

    ids = np.random.default_rng(0).integers(1000, vocab_size, (BATCH, length)).astype("i4")
    inputs = {
        "input_word_ids": ids,
        "input_mask": np.ones_like(ids),
        "input_type_ids": np.zeros_like(ids),
    }
    return tf.data.Dataset.from_tensors((inputs, ids[:, 0] % 2)).repeat(count)


def _step(length):
    import adapter_bert_tf as abt

    base = abt.load_base()
    dataset = _batches(base.config.vocab_size, length, WARMUP + COUNTED)
    rate = measuring.dataset_rate(_model(base, "adapters"), dataset, BATCH, WARMUP, COUNTED)
    return {
        "milliseconds": 1000 * BATCH / rate,
        "operations": needed(base.config, length),
        "peak_per_second": _peak(BATCH * length, base.config),
    }


def _peak(pieces, sizes):
    """Measures operations per second of the feed-forward sublayer's first product alone."""
    import tensorflow as tf

    shapes = ((pieces, sizes.hidden_size), (sizes.hidden_size, sizes.inner_dim))
    left, right = (tf.random.normal(shape) for shape in shapes)
    product = tf.function(lambda left, right: left @ right)
    times = []
    for _ in range(30):
        start = time.perf_counter()
        product(left, right)
        times.append(time.perf_counter() - start)
    return 2 * pieces * sizes.hidden_size * sizes.inner_dim / statistics.median(times)


def _memory(method):
    from adapter_bert_tf.base import load_base
    from adapter_bert_tf.output.provenance import peak_memory_mb

    small = load_base()
    sizes = dataclasses.replace(small.config, **BERT_BASE)
    base = dataclasses.replace(small, config=sizes, weights_path=None)
    before = peak_memory_mb()
    dataset = _batches(sizes.vocab_size, LENGTH, 2)
    measuring.dataset_rate(_model(base, method), dataset, BATCH, 1, 1)
    return {"megabytes": peak_memory_mb() - before}


def run_missing(data_dir, turns):
    """Measures the missing cases, in turns."""
    plan = [(w, turn) for turn in range(turns) for w in WHATS]
    for label, turn in LEDGER.missing(plan):
        row = {"what": label, "turn": turn}
        row |= measuring.run_in_process(
            "benchmarks.costs", label, str(pathlib.Path(data_dir).resolve())
        )
        row |= measuring.describe_machine()
        print(row, flush=True)
        LEDGER.add("rows", [row])


def costs(rows_by_key):
    """Returns Markdown lines: medians and ranges."""
    lines = ["| measure | median | range |", "| --- | --- | --- |"]
    results = {w: [r for key, r in rows_by_key.items() if key[0] == w] for w in WHATS}
    for label, rows in results.items():
        for name, values, form in _shown(label, rows):
            median, low, high = statistics.median(values), min(values), max(values)
            lines += [
                f"| {name} | {form.format(median)} | {form.format(low)}-{form.format(high)} |"
            ]
    return lines


def _shown(label, rows):
    """Returns (name, values, format) of each line of a measurement."""
    if not rows:
        return
    if label == "start":
        values = [row["seconds"] for row in rows]
        yield "start of the command to its first step, s", values, "{:.1f}"
    elif label in MEMORY:
        yield f"{label}, MB", [row["megabytes"] for row in rows], "{:.0f}"
    elif label in (LATENCY, LATENCY_OF_PEER):
        yield f"{label}, one sentence pair, ms", [row["milliseconds"] for row in rows], "{:.1f}"
    elif label in (ANSWERS, UPPER_ANSWERS):
        values = [row["at_once"] for row in rows]
        yield f"one sentence pair, one call through {label}, ms", values, "{:.0f}"
        values = [row["apart"] / row["at_once"] for row in rows]
        yield "20 calls, relative to one call", values, "{:.1f}"
    else:
        yield f"{label}, ms", [row["milliseconds"] for row in rows], "{:.0f}"
        shares = [r["operations"] / r["peak_per_second"] / r["milliseconds"] * 1e3 for r in rows]
        yield f"{label}, share of matrix products", shares, "{:.0%}"


def write_tables():
    """Rewrites the table in its page."""
    LEDGER.write_tables(costs)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of MRPC."),
        turns=(TURNS, "Number of measurements of each case."),
    )
