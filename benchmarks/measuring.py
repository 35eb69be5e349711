"""What measurements of training have in common: a rate, and processes of their own."""

import importlib.metadata
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS, PEERS = ("tensorflow", "tf-models-official"), ("torch", "transformers", "adapters", "peft")


def machine(packages=(*OURS, *PEERS)):
    """What a measurement depends on besides the code: the processor and the packages."""
    found = {name: _version(name) for name in packages}
    return {"processor": _processor(), "versions": {n: v for n, v in found.items() if v}}


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
    """Word pieces and label ids of examples whose labels are numbers."""
    from adapter_bert_tf.data.batches import tokenize
    from adapter_bert_tf.data.tokenization import TextEncoder

    labels = examples.labels and [int(label) for label in examples.labels]
    return tokenize(examples, TextEncoder(base.vocabulary, length), labels)


def rate(model, found, batch, length, warmup, steps, learning_rate=1e-3):
    """Examples/s of training, the input pipeline included; the first steps do not count.

    Args:
      model: what it trains is chosen already.
      found: `features`.
      batch: examples a step.
      length: longest input in word pieces.
      warmup: steps that do not count.
      steps: steps that do.
      learning_rate: the peak.
    """
    from adapter_bert_tf.data.batches import train_batches

    fed = train_batches(found, batch, warmup + steps, 0, length)
    return rate_of(model, fed, batch, warmup, steps, learning_rate)


def rate_of(model, fed, batch, warmup, steps, learning_rate=1e-3):
    """As `rate`, of a `tf.data.Dataset` of just so many batches."""
    import tf_keras

    from adapter_bert_tf.training import loop

    times = []
    clock = tf_keras.callbacks.LambdaCallback(
        on_batch_end=lambda batch, logs: times.append(time.perf_counter())
    )
    loop.compile_model(model, loop.TrainingSettings(warmup + steps, batch, learning_rate))
    model.fit(fed, verbose=0, callbacks=[clock])
    return steps * batch / (times[-1] - times[warmup - 1])


def milliseconds(call, warmup, counted):
    """Of each of `counted` calls, after `warmup` ones that do not count."""
    times = []
    for _ in range(warmup + counted):
        began = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - began))
    return times[warmup:]


def rate_of_steps(done, batch, warmup, steps):
    """Examples/s of an iterator that takes a step for each of its elements."""
    times = [time.perf_counter() for _ in done]
    return steps * batch / (times[-1] - times[warmup - 1])


def speed_rows(found):
    """Markdown cells of measurements: examples/s, the share of the first case's, peak memory.

    Args:
      found: dict from case to its rows, of which the first is what the others are compared with.
    """
    rates = {c: [row["examples_per_second"] for row in rows] for c, rows in found.items() if rows}
    cells = {}
    for case, values in rates.items():
        share = statistics.median(values) / statistics.median(next(iter(rates.values())))
        memory = statistics.median(row["peak_memory_mb"] for row in found[case])
        spread = f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"
        cells[case] = f"{spread} | {share:.0%} | {memory:.0f} |"
    return cells


def apart(module, *arguments):
    """What `python -m MODULE --measure ARGUMENTS` prints last, as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--measure", *arguments],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
