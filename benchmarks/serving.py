"""Requests/s, latency and memory of a served SavedModel of several tasks, under load.

    python -m benchmarks.serving            # measures what is missing
    python -m benchmarks.serving --table    # only the tables

A process runs examples/serving/server.py on the loopback interface, with MiniLM and three adapters;
another one is its clients, each of which sends its next request when it has the answer. Both share
the cores, and end with this process or after a time limit. Needs `pip install aiohttp`.
"""

import collections
import dataclasses
import itertools
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from benchmarks import ledger, measuring, runner
from benchmarks.serving_clients import Asked, Sample
from benchmarks.serving_processes import Server, read_lines, served, start_clients

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "serving",
    page=runner.ROOT / "docs" / "serving_load.md",
    key=lambda row: Case(*(row[name] for name in Case._fields)),
)
Case = collections.namedtuple("Case", "what batches signature turn")
LOAD, MEMORY, RELOAD = "load", "memory", "reload"
TASKS, OWN = "tasks", "its own"  # Signatures: one for all tasks, or that of each task.
# max_batch_size and batch_timeout_micros; None for no batches.
BATCHES: dict[str, tuple[int, int] | None] = {
    "none": None,
    "4 rows, no wait": (4, 0),
    "8 rows, no wait": (8, 0),
    "32 rows, no wait": (32, 0),
    "32 rows, 5 ms": (32, 5_000),
}
CHOSEN = "8 rows, no wait"  # Of `examples/serving`.
CLIENTS, TURNS, SECONDS, REQUESTS = (1, 8, 32), 2, 20, 100_000
RELOAD_CLIENTS, RELOAD_SECONDS = 8, 150.0
RELOAD_PARTS = {"else": "at other times", "at_change": "while a version is loaded"}  # Titles.
VERSIONS = (2, 3, 4)  # Put in place in turn, each 15 s after the one before answers.
MANY_CLIENTS = 32  # Of the long run, whose texts are shorter, so that it takes less time.
STEPS = 20  # Of its requests; after each, memory is read.
WORDS, FEW_WORDS = 20, 5  # Median of the texts.
LABELS = {
    "reviews": ["bad", "good"],
    "mail": ["billing", "delivery", "praise"],
    "tickets": ["high", "low", "medium", "none"],
}


def plan(requests: int) -> list[Case]:
    """Returns all cases: the settings, new versions, the settings again, and memory."""
    settings = [*((name, TASKS) for name in BATCHES), (CHOSEN, OWN)]
    first, *more = ([Case(LOAD, *setting, turn) for setting in settings] for turn in range(TURNS))
    reload, memory = Case(RELOAD, CHOSEN, TASKS, 0), Case(MEMORY, CHOSEN, TASKS, requests)
    return [*first, reload, *itertools.chain(*more), memory]


def write_versions(folder: pathlib.Path) -> None:
    """Trains three adapters on a few texts; writes the versions 1 to 4 of their SavedModel."""
    import adapter_bert_tf as abt
    from adapter_bert_tf.base import load_base
    from adapter_bert_tf.serving.joined import join

    adapters = []
    for name, labels in LABELS.items():
        texts = [f"This is {label}." for label in labels] * 16
        out = str(folder / name)
        abt.train(texts, labels * 16, dev=(texts, labels * 16), output_dir=out, num_train_epochs=1)
        adapters.append(f"{name}={out}/adapter")
    for version in (1, *VERSIONS):
        join(adapters, load_base(), str(folder / "versions" / str(version)))


def measure(case: Case, versions: pathlib.Path, seconds: float) -> dict[str, Any]:
    """Measures a case in new processes."""
    asked = Asked(list(LABELS), list(LABELS) if case.signature == OWN else [], WORDS)
    with served(versions, batching_parameters(case.batches)) as server:
        if case.what == RELOAD:
            return _measure_reload(server, asked, versions)
        if case.what == MEMORY:
            return _measure_memory(server, asked, case.turn)
        loads = {}
        for count in CLIENTS:
            *_, found = read_lines(start_clients(server, asked, count, seconds))
            loads[str(count)] = summary(found["samples"])
        return {"loads": loads}


def _measure_reload(server: Server, asked: Asked, versions: pathlib.Path) -> dict[str, Any]:
    """Puts new versions in place while clients run."""
    changes, memory = [], [server.resident_mb()]
    clients = start_clients(server, asked, RELOAD_CLIENTS, RELOAD_SECONDS)
    end = time.time() + RELOAD_SECONDS
    for version in VERSIONS:
        time.sleep(15)
        begin = time.time()
        (versions / str(version)).rename(server.base / str(version))
        server.wait_for(version)
        changes.append((begin, time.time()))
        memory.append(server.resident_mb())
    if time.time() > end:
        raise SystemExit("The last version came after the clients had ended.")
    *_, found = read_lines(clients)
    return summary(found["samples"], changes) | {"memory_mb": [*memory, server.resident_mb()]}


def _measure_memory(server: Server, asked: Asked, requests: int) -> dict[str, Any]:
    """Sends many requests, and reads the server's memory on the way."""
    asked, memory = dataclasses.replace(asked, words=FEW_WORDS), [server.resident_mb()]
    for found in read_lines(start_clients(server, asked, MANY_CLIENTS, most=requests)):
        if found["requests"] >= len(memory) * requests // STEPS:
            memory.append(server.resident_mb())
    return summary(found["samples"]) | {"memory_mb": memory}


def batching_parameters(name: str) -> str:
    """The text of the server's settings; empty for none."""
    if not (setting := BATCHES[name]):
        return ""
    values = {"max_batch_size": setting[0], "batch_timeout_micros": setting[1]}
    values |= {"max_enqueued_batches": 100, "num_batch_threads": os.cpu_count() or 1}
    return "".join(f"{name} {{ value: {value} }}\n" for name, value in values.items())


def summary(samples: Sequence[Sample], changes: Sequence[Sample] = ()) -> dict[str, Any]:
    """Rate and latencies of requests; of those at a change of versions also apart.

    Args:
      samples: see `serving_clients.Sample`.
      changes: begin and end of each change, as `time.time()`.
    """
    times = sorted(ms for _, ms in samples)
    seconds = max(at + ms / 1000 for at, ms in samples) - min(at for at, _ in samples)
    values: dict[str, Any] = {
        "requests": len(times),
        "requests_per_second": len(times) / seconds,
        "p50_ms": statistics.median(times),
        "p99_ms": times[int(0.99 * (len(times) - 1))],
        "most_ms": times[-1],
    }
    if changes:
        at_change = [
            any(at + ms / 1000 >= begin and at <= end for begin, end in changes)
            for at, ms in samples
        ]
        parts = {"at_change": at_change, "else": [not is_one for is_one in at_change]}
        values |= {n: summary([*itertools.compress(samples, own)]) for n, own in parts.items()}
        values["seconds_of_change"] = [end - begin for begin, end in changes]
    return values


def run_missing(seconds: int, requests: int) -> None:
    """Measures the missing cases one after the other, and adds their rows."""
    missing = LEDGER.missing(plan(requests))
    if not missing:
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_versions(folder)
        for case in missing:
            row = case._asdict() | measure(case, folder / "versions", seconds)
            print(row, flush=True)
            LEDGER.add("rows", [row | measuring.describe_machine(measuring.PACKAGES)])


def serving_load(rows_by_key: ledger.Rows) -> list[str]:
    """Returns Markdown lines: rates and latencies of each setting."""
    counts = " | ".join(f"{count} client{'s' * (count > 1)}" for count in CLIENTS)
    lines = [f"| batches | signature | {counts} |", "| --- | --- |" + " --- |" * len(CLIENTS)]
    rows = [row for row in rows_by_key.values() if row["what"] == LOAD]
    for key in dict.fromkeys((row["batches"], row["signature"]) for row in rows):
        own = [row["loads"] for row in rows if (row["batches"], row["signature"]) == key]
        cells = []
        for count in map(str, CLIENTS):
            rate, p50, p99 = (
                statistics.mean(loads[count][name] for loads in own)
                for name in ("requests_per_second", "p50_ms", "p99_ms")
            )
            cells.append(f"{rate:.0f}/s, {p50:.0f}, {p99:.0f} ms")
        lines.append(f"| {key[0]} | {key[1]} | {' | '.join(cells)} |")
    return _or_nothing(lines)


def serving_memory(rows_by_key: ledger.Rows) -> list[str]:
    """Returns Markdown lines: resident memory along the requests."""
    lines = ["| requests | resident memory of the server, MB |", "| --- | --- |"]
    for row in rows_by_key.values():
        if row["what"] == MEMORY:
            memory, step = row["memory_mb"], row["turn"] // STEPS
            shown = [i for i in (0, 1, 2, 4, 10, 16, STEPS) if i < len(memory)]
            lines += [f"| {i * step:,} | {memory[i]:,.0f} |" for i in shown]
    return _or_nothing(lines)


def serving_reload(rows_by_key: ledger.Rows) -> list[str]:
    """Returns Markdown lines: waits of requests while a version is loaded, and at other times."""
    lines = ["| requests | number | p50, ms | p99, ms | longest, ms |", "| --- |" + " --- |" * 4]
    for row in rows_by_key.values():
        for name in RELOAD_PARTS if row["what"] == RELOAD else ():
            own, title = row[name], RELOAD_PARTS[name]
            waits = " | ".join(f"{own[k]:.0f}" for k in ("p50_ms", "p99_ms", "most_ms"))
            lines.append(f"| {title} | {own['requests']:,} | {waits} |")
    return _or_nothing(lines)


def _or_nothing(lines: list[str]) -> list[str]:
    """The lines of a table, or of one without rows a sentence."""
    return lines if len(lines) > 2 else ["Not measured yet."]


def write_tables() -> None:
    """Rewrites the tables in docs/serving_load.md."""
    LEDGER.write_tables(serving_load, serving_memory, serving_reload)


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        seconds=(SECONDS, "Seconds of a short run."),
        requests=(REQUESTS, "Requests of the long run."),
    )
