"""What many tasks on one base cost: bytes on disk, resident memory, time.

    python -m benchmarks.many_tasks            # MiniLM, adapters of size 64

Prints each figure beside its bound, and exits with status 1 if one is missed.
"""

import functools
import gc
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import tensorflow as tf

from adapter_bert_tf.base import load_base
from adapter_bert_tf.many_tasks.model import AdapterModel
from adapter_bert_tf.serving.many import join

TASKS, BATCH, LENGTH, SHORT = 20, 32, 128, 32


def folder_bytes(folder):
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())


def resident_bytes():
    """Of this process."""
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


def seconds(function, times=7):
    """The median of several calls, after one to warm up."""
    function()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def check(what, value, bound, at_least=False):
    """Prints a figure and its bound; returns whether it holds."""
    holds = value >= bound if at_least else value <= bound
    print(
        f"{'ok    ' if holds else 'MISSED'} {what}: {value:,.4g} "
        f"({'at least' if at_least else 'at most'} {bound:,.4g})",
        flush=True,
    )
    return holds


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
    """Resident memory with 1, 20 and 100 tasks, each called once."""
    model, inputs, sizes = AdapterModel(base), batch(1, 16), {}
    for number in range(100):
        name = model.load_adapter(folders[number % TASKS], f"loaded{number}")
        model(inputs, adapter=name)
        if number + 1 in (1, 20, 100):
            sizes[number + 1] = resident_bytes()
    print({count: f"{size / 1e6:.0f} MB" for count, size in sizes.items()})
    return [
        check(
            f"memory of a task, {first} to {last}, in adapters",
            (sizes[last] - sizes[first]) / (last - first) / weights,
            1.1,
        )
        for first, last in ((1, 20), (20, 100))
    ]


def measure_speed(base, folders):
    """Time of a batch of eight tasks and of as many as rows, against one task's."""
    model = AdapterModel(base)
    names = [model.load_adapter(folders[i % TASKS], str(i)) for i in range(BATCH)]
    held = []
    for count, length, bound in ((8, LENGTH, 1.4), (BATCH, LENGTH, 1.3), (BATCH, SHORT, 1.3)):
        inputs, mixed = batch(length=length), (names[:count] * BATCH)[:BATCH]
        one, many = (seconds(functools.partial(model, inputs, a)) for a in (names[0], mixed))
        what = f"time of {BATCH} rows of {length} pieces and {count} tasks, in those of one task"
        held.append(check(what, many / one, bound))
    return held


def main():
    """Measures everything."""
    base = load_base()
    with tempfile.TemporaryDirectory() as folder:
        folders, weights = save_all(base, folder)
        held = [
            check(
                "adapter directory, in bytes of its weights",
                folder_bytes(folders[0]) / weights,
                1.05,
            )
        ]
        held += measure_memory(base, folders, weights)
        held += measure_speed(base, folders)
        base_bytes = 4 * sum(
            v.shape.num_elements() for v in base.build_encoder().base_variables().values()
        )
        join(folders, base, os.path.join(folder, "served"))
        held += [
            check(
                "SavedModel of 20 tasks, MB",
                folder_bytes(f"{folder}/served") / 1e6,
                (base_bytes + TASKS * 1.2 * weights) / 1e6,
            )
        ]
    sys.exit(not all(held))


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    main()
