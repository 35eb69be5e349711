"""Counts how many short trainings die, with the kernels of oneDNN and with TensorFlow's own.

    python -m benchmarks.soak --minutes=60     # adds a row for each kind of kernels
    python -m benchmarks.soak --table          # prints the sums

A run is a process: it trains a tiny BERT with adapters for 500 steps on batches of any length, for
each of which oneDNN prepares new kernels, and answers 64 single rows. A run that ends with a signal
has died. `KERNELS` are environment variables; those of `oneDNN, AVX2` leave out what processors
with AVX-512 have more.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

from benchmarks import measuring

FILE = pathlib.Path(__file__).parent / "results" / "soak" / "rows.jsonl"
KERNELS = {
    "oneDNN": {"TF_ENABLE_ONEDNN_OPTS": "1"},
    "oneDNN, AVX2": {"TF_ENABLE_ONEDNN_OPTS": "1", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "TensorFlow's own": {"TF_ENABLE_ONEDNN_OPTS": "0"},
}
SIZES = {
    "vocab_size": 120,
    "hidden_size": 32,
    "num_layers": 2,
    "num_attention_heads": 4,
    "inner_dim": 64,
    "max_sequence_length": 64,
}
STEPS, ANSWERS = 500, 64


def one_run(seed: int) -> None:
    """Trains, evaluates and answers."""
    import numpy as np
    import tensorflow as tf
    import tf_keras

    import adapter_bert_tf as abt
    from adapter_bert_tf.adapters.task_encoder import new_encoder
    from adapter_bert_tf.training.loop import TrainingSettings, compile_model

    tf_keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    size = int(rng.choice([4, 7, 8, 16]))
    model = abt.Classifier(new_encoder(SIZES, abt.AdapterConfig(size)), int(rng.integers(2, 5)))
    abt.select_trained(model, abt.Tuning())
    compile_model(model, TrainingSettings(steps=STEPS, batch_size=8, learning_rate=1e-3))

    def batches(rows, count):
        for length in rng.integers(1, 65, count):
            ids = rng.integers(1, SIZES["vocab_size"], (rows, length)).astype("i4")
            inputs = {"input_word_ids": ids, "input_mask": np.ones_like(ids)}
            yield inputs | {"input_type_ids": np.zeros_like(ids)}, ids[:, 0] % 2

    matrix = tf.TensorSpec([None, None], tf.int32)
    names = ("input_word_ids", "input_mask", "input_type_ids")
    signature = (dict.fromkeys(names, matrix), tf.TensorSpec([None], tf.int32))
    data = tf.data.Dataset.from_generator(lambda: batches(8, STEPS), output_signature=signature)
    model.fit(data, epochs=1, verbose=0)
    for inputs, _ in batches(1, ANSWERS):
        model(inputs)


def soak(seconds: float) -> dict[str, int]:
    """Runs for some time; returns the number of runs by exit status, negative for a signal."""
    import tensorflow as tf
    import tf_keras

    import adapter_bert_tf.training.loop

    assert tf and tf_keras.Model and adapter_bert_tf.training.loop  # Each run would import them.
    counts = collections.Counter[int]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seed = time.time_ns() % 2**31
        process = os.fork()
        if process == 0:
            one_run(seed)
            os._exit(0)
        counts[os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])] += 1
    return {str(status): count for status, count in counts.items()}


def table() -> str:
    """Returns the sums of all rows."""
    sums = collections.defaultdict[str, collections.Counter[str]](collections.Counter)
    for line in FILE.read_text().splitlines():
        row = json.loads(line)
        sums[row["kernels"]].update(row["statuses"])
    lines = ["| kernels | runs | deaths |", "| --- | --- | --- |"]
    for kernels, statuses in sums.items():
        deaths = sum(count for status, count in statuses.items() if status.startswith("-"))
        lines.append(f"| {kernels} | {statuses.total():,} | {deaths} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--seconds_of_one", type=float, help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.table:
        print(table())
        return
    if parsed.seconds_of_one:
        print(json.dumps(soak(parsed.seconds_of_one)))
        return
    end, kinds = time.monotonic() + 60 * parsed.minutes, collections.deque(KERNELS)
    while time.monotonic() < end:
        part = min(300.0, 20.0 * parsed.minutes)
        environment = os.environ | KERNELS[kinds[0]] | {"TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, "-m", "benchmarks.soak", f"--seconds_of_one={part}"]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        row = {"kernels": kinds[0], "statuses": json.loads(done.stdout.splitlines()[-1])}
        row |= measuring.describe_machine(("tensorflow",))
        with FILE.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)
        kinds.rotate(-1)


if __name__ == "__main__":
    main()
