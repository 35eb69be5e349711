"""What matrix products alone take: the least time of a training step and of a prediction.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.products --data_dir=FOLDER  # what is missing
    python -m benchmarks.products --table                             # only the table

FOLDER holds `glue/MRPC`. A graph computes only the products of dense layers and adapters of MiniLM,
in the order of a model, each with kernels of its own, so that these come from memory as in a model.
The last block is left out, because this project computes one position of it. Attention has less
than a tenth of the products' operations and is left out too. The table sets the least time of four
libraries beside the time of the whole work, ours and that of PyTorch's `adapters`. With the best
of these products and nothing else, this project would be as many times as fast as `adapters` as the
last column says. Each measurement has its own process, and all take turns.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import ledger, measuring, runner

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "products",
    page=runner.ROOT / "docs" / "performance.md",
    key=lambda row: (row["work"], row["system"], row["turn"]),
)
# Rows, positions, whether gradients are computed, and what `benchmarks.ratio` calls the whole.
WORKS = {"a step, 32 x 56": (32, 56, True, "step"), "a pair, 1 x 53": (1, 53, False, "latency")}
ONEDNN, OWN, TORCH, NUMPY = "TensorFlow, oneDNN", "TensorFlow's own", "PyTorch", "NumPy (OpenBLAS)"
LIBRARIES = (ONEDNN, OWN, TORCH, NUMPY)
OURS, PEER = "ours", "adapters"  # As in `benchmarks.ratio`.
BLOCKS, HIDDEN, INNER, BOTTLENECK = 5, 384, 1536, 64
# The kernels of a block and the values that each reads: its input, or what the one before computed.
SHAPES = (
    *[(HIDDEN, HIDDEN)] * 4,
    *[(HIDDEN, BOTTLENECK), (BOTTLENECK, HIDDEN)],
    *[(HIDDEN, INNER), (INNER, HIDDEN)],
    *[(HIDDEN, BOTTLENECK), (BOTTLENECK, HIDDEN)],
)
ADAPTER_KERNELS = (4, 5, 8, 9)  # Only these have gradients.


def measure(work: str, system: str, data_dir: str) -> dict[str, float]:
    """Measures the median milliseconds of one case, in its own process."""
    rows, positions, trained, whole = WORKS[work]
    if system in (OURS, PEER):
        from benchmarks import ratio

        value = ratio.measure(whole, system, data_dir)["value"]
        return {"milliseconds": 1000 * rows / value if trained else value}
    call = {TORCH: _torch, NUMPY: _numpy}.get(system, _tensorflow)(rows * positions, trained)
    times = measuring.time_calls(call, 10, 40 if trained else 200)
    return {"milliseconds": statistics.median(times), "least": min(times)}


def operations(positions: int, trained: bool) -> int:
    """Operations of the products: of the gradients by inputs as many, and those by kernels."""
    forward = sum(2 * a * b for a, b in SHAPES) * positions * BLOCKS
    kernels = sum(2 * a * b for a, b in (SHAPES[i] for i in ADAPTER_KERNELS)) * positions * BLOCKS
    return 2 * forward + kernels if trained else forward


def run(multiply: Callable[..., Any], x: Any, kernels: list[list[Any]], trained: bool) -> list[Any]:
    """The products of all blocks; `multiply` is a function of two matrices and `left`, `right`.

    These say which of the two is transposed. Gradients are products with the results in place of
    what would come back, which take as long.
    """
    read: list[tuple[Any, Any]] = []
    for block in kernels:
        for number, kernel in enumerate(block):
            result = multiply(x, kernel)
            read.append((x, result))
            x = x if number < 2 else result
    results = [x]
    if trained:
        flat = [kernel for block in kernels for kernel in block]
        for number, (kernel, (value, result)) in enumerate(zip(flat, read, strict=True)):
            results.append(multiply(result, kernel, right=True))
            if number % len(SHAPES) in ADAPTER_KERNELS:
                results.append(multiply(value, result, left=True))
    return results


def _kernels() -> Iterator[list[Any]]:
    import numpy as np

    rng = np.random.default_rng(0)
    for _ in range(BLOCKS):
        yield [rng.normal(size=shape).astype("f4") * shape[0] ** -0.5 for shape in SHAPES]


def _values(positions: int) -> Any:
    import numpy as np

    return np.random.default_rng(1).normal(size=(positions, HIDDEN)).astype("f4")


def _tensorflow(positions: int, trained: bool) -> Callable[[], Any]:
    import tensorflow as tf

    kernels = [[tf.Variable(kernel) for kernel in block] for block in _kernels()]
    x = tf.constant(_values(positions))

    def multiply(a: Any, b: Any, left: bool = False, right: bool = False) -> Any:
        return tf.matmul(a, b, transpose_a=left, transpose_b=right)

    # One value of each result, so that nothing is left out and little is handed over.
    call = tf.function(
        lambda: [value[0, 0] for value in run(multiply, x, kernels, trained)], autograph=False
    )
    return lambda: call()[0].numpy()


def _torch(positions: int, trained: bool) -> Callable[[], Any]:
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    kernels = [[torch.from_numpy(kernel) for kernel in block] for block in _kernels()]
    x = torch.from_numpy(_values(positions))

    def multiply(a: Any, b: Any, left: bool = False, right: bool = False) -> Any:
        return (a.T if left else a) @ (b.T if right else b)

    return lambda: run(multiply, x, kernels, trained)


def _numpy(positions: int, trained: bool) -> Callable[[], Any]:
    kernels, x = list(_kernels()), _values(positions)

    def multiply(a: Any, b: Any, left: bool = False, right: bool = False) -> Any:
        return (a.T if left else a) @ (b.T if right else b)

    return lambda: run(multiply, x, kernels, trained)


def run_missing(data_dir: str, turns: int) -> None:
    """Measures the missing cases, in turns, with the kernels that commands choose."""
    systems = (*LIBRARIES, OURS, PEER)
    cases = [(work, system, turn) for turn in range(turns) for work in WORKS for system in systems]
    for work, system, turn in LEDGER.missing(cases):
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0" if system == OWN else "1"
        start = time.perf_counter()
        found = measuring.run_in_process("benchmarks.products", work, system, data_dir)
        row = {"work": work, "system": system, "turn": turn} | found
        print(row, f"{time.perf_counter() - start:.0f} s", flush=True)
        packages = (*measuring.PACKAGES, *measuring.PEER_PACKAGES, "numpy")
        LEDGER.add("rows", [row | measuring.describe_machine(packages)])


def products(rows_by_key: ledger.Rows) -> list[str]:
    """Returns Markdown lines: the products' milliseconds by library, and those of the whole."""
    heads = ["work", *LIBRARIES, "ours", "`adapters`", "times as fast", "at most"]
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " --- |" * (len(heads) - 1)]
    for work, (rows, positions, trained, _) in WORKS.items():
        found: dict[str, list[float]] = {system: [] for system in (*LIBRARIES, OURS, PEER)}
        for row in rows_by_key.values():
            if row["work"] == work:
                found[row["system"]].append(row["milliseconds"])
        if not all(found.values()):
            continue
        medians = {system: statistics.median(values) for system, values in found.items()}
        rates = operations(rows * positions, trained)
        cells = [f"{medians[s]:.1f} ({rates / medians[s] / 1e6:.0f})" for s in LIBRARIES]
        least = min(medians[system] for system in LIBRARIES)
        cells += [f"{medians[system]:.1f}" for system in (OURS, PEER)]
        cells += [f"{medians[PEER] / medians[OURS]:.2f}", f"{medians[PEER] / least:.2f}"]
        lines.append(f"| {work} | {' | '.join(cells)} |")
    return lines


def write_tables() -> None:
    """Rewrites the table in docs/performance.md."""
    LEDGER.write_tables(products)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of the data sets."),
        turns=(3, "How often each case is measured."),
    )
