"""Common code of measurements: rates, tables and separate processes."""

import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES, PEER_PACKAGES = (
    ("tensorflow", "tf-models-official"),
    ("torch", "transformers", "adapters", "peft"),
)


def describe_machine(packages=(*PACKAGES, *PEER_PACKAGES)):
    """Returns the processor and the versions of packages."""
    versions = {name: _version(name) for name in packages}
    return {"processor": _processor(), "versions": {n: v for n, v in versions.items() if v}}


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    named = next((line for line in lines if line.startswith("model name")), platform.machine())
    return named.partition(": ")[2] or named


def features(examples, base, length):
    """Tokenizes examples with numeric labels."""
    from adapter_bert_tf.data.batches import tokenize
    from adapter_bert_tf.data.tokenization import TextEncoder

    labels = examples.labels and [int(label) for label in examples.labels]
    return tokenize(examples, TextEncoder(base.vocabulary, length), labels)


def training_rate(model, examples, batch, length, warmup, steps, learning_rate=1e-3):
    """Measures examples/s of training, with the input pipeline, without the first steps.

    Args:
      model: model with selected trained variables.
      examples: result of `features`.
      batch: examples per step.
      length: maximum length in word pieces.
      warmup: number of first steps that do not count.
      steps: number of steps that count.
      learning_rate: the peak.
    """
    from adapter_bert_tf.data.batches import train_batches

    dataset = train_batches(examples, batch, warmup + steps, 0, length)
    return dataset_rate(model, dataset, batch, warmup, steps, learning_rate)


def dataset_rate(model, dataset, batch, warmup, steps, learning_rate=1e-3):
    """Measures `training_rate` on a `tf.data.Dataset` of `warmup + steps` batches."""
    import tf_keras

    from adapter_bert_tf.training import loop

    times = []
    clock = tf_keras.callbacks.LambdaCallback(
        on_batch_end=lambda batch, logs: times.append(time.perf_counter())
    )
    loop.compile_model(model, loop.TrainingSettings(warmup + steps, batch, learning_rate))
    model.fit(dataset, verbose=0, callbacks=[clock])
    return steps * batch / (times[-1] - times[warmup - 1])


def time_calls(call, warmup, counted):
    """Returns milliseconds of each of `counted` calls, after `warmup` calls that do not count."""
    times = []
    for _ in range(warmup + counted):
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return times[warmup:]


def step_rate(iterator, batch, warmup, steps):
    """Measures examples/s of an iterator that makes a step for each element."""
    times = [time.perf_counter() for _ in iterator]
    return steps * batch / (times[-1] - times[warmup - 1])


def spread(values, digits=1):
    """Formats the median and, of several values, their range: `81.1 (80.9-82.4)`; "" of none."""
    if not values:
        return ""
    middle, low, high = (f"{f(values):.{digits}f}" for f in (statistics.median, min, max))
    return f"{middle} ({low}-{high})" if len(values) > 1 else middle


def speed_rows(results):
    """Returns Markdown cells: examples/s, relative to the first case, peak memory.

    Args:
      results: dict from case to its rows.
    """
    rates = {c: [row["examples_per_second"] for row in rows] for c, rows in results.items() if rows}
    cells = {}
    for case, values in rates.items():
        share = statistics.median(values) / statistics.median(next(iter(rates.values())))
        memory = statistics.median(row["peak_memory_mb"] for row in results[case])
        cells[case] = f"{spread(values)} | {share:.0%} | {memory:.0f} |"
    return cells


def run_in_process(module, *arguments, core=None):
    """Runs `python -m MODULE --measure ARGUMENTS` and parses its last line as JSON.

    `core` is the one to run on alone; None for all.
    """
    process = subprocess.run(
        [sys.executable, "-m", module, "--measure", *arguments],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
    )
    return json.loads(process.stdout.splitlines()[-1])


def product_dtype() -> str | None:
    """The dtype in which commands multiply by the base's kernels on this processor.

    A limit of oneDNN's instructions, as `benchmarks.ratio --isa` sets it, hides what this needs.
    """
    from adapter_bert_tf.training.device.kernels import multiplies_bfloat16

    limited = "ONEDNN_MAX_CPU_ISA" in os.environ
    return "bfloat16" if multiplies_bfloat16() and not limited else None
