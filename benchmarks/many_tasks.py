"""Cost of many tasks on one base: bytes on disk, resident memory, time.

    python -m benchmarks.many_tasks            # measures what is missing
    python -m benchmarks.many_tasks --table    # only rewrites its page

MiniLM with random adapters of size 64. Memory is that of a process that has loaded this number of
adapters and called each once. Times are those of 32 rows of several tasks, relative to 32 rows of
one task, medians of 7 calls in turns; `of 1,000` has 1,000 loaded adapters.
"""

import functools
import gc
import itertools
import os
import pathlib
import statistics
import tempfile

import numpy as np
import tensorflow as tf

from adapter_bert_tf.base import load_base
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.serving.joined import join
from benchmarks import ledger, measuring, runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "many_tasks",
    page=ROOT / "docs" / "performance.md",
    key=lambda row: row["what"],
)
TASKS, BATCH, LENGTH, SHORT, TIMES = 20, 32, 128, 32, 7
LOADED = (1, 20, 100, 1000)


def folder_bytes(folder):
    """Returns the size of all files in a folder."""
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())


def resident_bytes():
    """Returns the resident memory of this process."""
    gc.collect()
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def batch(rows=BATCH, length=LENGTH):
    """Random encoder inputs without padding."""
    ids = np.random.default_rng(0).integers(1000, 20000, (rows, length)).astype("i4")
    return {
        "input_word_ids": ids,
        "input_mask": np.ones_like(ids),
        "input_type_ids": np.zeros_like(ids),
    }


def save_all(base, folder):
    """Saves random adapters of `TASKS` tasks; returns their folders and bytes of weights."""
    model, folders = AdapterModel(base), []
    rng = np.random.default_rng(0)
    for number in range(TASKS):
        trained = model.add_adapter(f"task{number}", ["0", "1"])
        for variable in trained.trainable_variables:
            variable.assign_add(rng.normal(size=variable.shape) * 0.01)
        folders.append(os.path.join(folder, f"task{number}"))
        model.save_adapter(f"task{number}", folders[-1])
        model.delete_adapter(f"task{number}")
    weights = 4 * sum(v.shape.num_elements() for v in trained.trainable_variables)
    return folders, weights


def measure_memory(base, folders, weights):
    """Measures the resident memory of each additional task, relative to its weights."""
    model, inputs, sizes = AdapterModel(base), batch(1, 16), {}
    for number in range(LOADED[-1]):
        name = model.load_adapter(folders[number % TASKS], f"loaded{number}")
        model(inputs, adapter=name)
        if number + 1 in LOADED:
            sizes[number + 1] = resident_bytes()
    for first, last in itertools.pairwise(LOADED):
        value = (sizes[last] - sizes[first]) / (last - first) / weights
        yield f"memory of an adapter, {first:,} to {last:,}, in its weights", [value], 1.1


def measure_speed(base, folders):
    """Measures the time of batches of several tasks, relative to one task."""
    model = AdapterModel(base)
    names = [model.load_adapter(folders[i % TASKS], str(i)) for i in range(BATCH)]
    for count, length, bound in ((8, LENGTH, 1.4), (BATCH, LENGTH, 1.3), (BATCH, SHORT, 1.3)):
        values = time_ratios(model, names[:count], length)
        yield f"{BATCH} rows of {length} pieces and {count} tasks, in time of one", values, bound
    for i in range(BATCH, LOADED[-1]):
        model.load_adapter(folders[i % TASKS], str(i))
    for length in (LENGTH, SHORT):
        label = (
            f"{BATCH} rows of {length} pieces and {BATCH} tasks of {LOADED[-1]:,}, in time of one"
        )
        yield label, time_ratios(model, names, length), 1.3


def time_ratios(model, names, length):
    """Measures ratios of the time for several tasks to the time for one, alternating."""
    inputs, mixed = batch(length=length), (names * BATCH)[:BATCH]
    calls = [functools.partial(model, inputs, adapter) for adapter in (names[0], mixed)]
    durations = [[], []]
    for _ in range(TIMES):
        for call, times in zip(calls, durations, strict=True):
            times += measuring.time_calls(call, 1, 1)
    return [many / one for one, many in zip(*durations, strict=True)]


def measure():
    """Yields (what, values, bound) of each measurement."""
    base = load_base()
    with tempfile.TemporaryDirectory() as folder:
        folders, weights = save_all(base, folder)
        size = folder_bytes(folders[0]) / weights
        yield "adapter directory, in bytes of its weights", [size], 1.05
        yield from measure_memory(base, folders, weights)
        yield from measure_speed(base, folders)
        variables = base.build_encoder().base_variables().values()
        base_bytes = 4 * sum(v.shape.num_elements() for v in variables)
        join(folders, base, os.path.join(folder, "served"))
        bound = (base_bytes + TASKS * 1.2 * weights) / 1e6
        yield f"SavedModel of {TASKS} tasks, MB", [folder_bytes(f"{folder}/served") / 1e6], bound


def run_missing():
    """Measures everything, if the ledger is empty."""
    if LEDGER.rows():
        return
    results = [{"what": label, "values": v, "bound": bound} for label, v, bound in measure()]
    LEDGER.add("rows", [row | measuring.describe_machine() for row in results])


def many_tasks(rows_by_key):
    """Returns Markdown lines: medians, ranges and targets."""
    lines = ["| measure | median | range | target: at most |", "| --- | --- | --- | --- |"]
    for label, row in rows_by_key.items():
        values, bound = row["values"], row["bound"]
        spread = f"{min(values):.2f}-{max(values):.2f}" if len(values) > 1 else ""
        lines.append(f"| {label} | {statistics.median(values):.2f} | {spread} | {bound:.2f} |")
    return lines


def write_tables():
    """Rewrites the table in its page."""
    LEDGER.write_tables(many_tasks)


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    runner.run_benchmark(__doc__, run_missing, write_tables)
