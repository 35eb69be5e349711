"""Rows/s and memory of `adapter-bert score`, next to `predict`, on generated rows.

    python -m benchmarks.scoring            # measures what is missing
    python -m benchmarks.scoring --table    # only the tables

The rows are short generated texts in CSV files, the base is MiniLM. Times are those of whole
commands, with their start. `predict` and one worker have all cores. Two workers are compared with
one worker of one thread, which may still read and write on the other core, and with one on a core
of its own. While a command runs, the resident memory of each of its processes is read every few
seconds; a row has the most of any worker up to a tenth of the rows, and in all.
"""

import collections
import csv
import itertools
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks import ledger, measuring, runner

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "scoring",
    page=runner.ROOT / "docs" / "scoring.md",
    key=lambda row: Case(row["system"], row["rows"], row["turn"]),
)
Case = collections.namedtuple("Case", "system rows turn")
PREDICT, ONE, SINGLE, TWO = "predict", "1 worker", "1 worker, 1 thread", "2 workers, 1 thread each"
ON_ONE_CORE = "1 worker, 1 thread, 1 core"
FLAGS = {
    ONE: ["--workers=1"],
    SINGLE: ["--workers=1", "--threads=1"],
    ON_ONE_CORE: ["--workers=1", "--threads=1"],
    TWO: ["--workers=2", "--threads=1"],
}
ROWS, MANY, TURNS, FILES = 50_000, 1_000_000, 2, 4
COMMAND = [sys.executable, "-m", "adapter_bert_tf"]
EVERY = 2.0  # Seconds.


def plan(rows: int, many: int) -> list[Case]:
    """Returns all cases: the systems in turns, then longer runs, whose starts count for little."""
    turns = [Case(name, rows, t) for t in range(TURNS) for name in (PREDICT, ONE, SINGLE, TWO)]
    return [
        *turns,
        Case(TWO, many, 0),
        *(Case(one, many // 20, 0) for one in (SINGLE, ON_ONE_CORE)),
    ]


def write_rows(folder: pathlib.Path, count: int, files: int) -> int:
    """Writes CSV files of short texts; returns their bytes."""
    rng, folder = random.Random(0), pathlib.Path(folder)
    folder.mkdir()
    words = pathlib.Path(__file__).read_text().replace(",", " ").split()
    words = sorted({word for word in words if word.isalpha()})
    for number in range(files):
        with open(folder / f"part-{number}.csv", "w", newline="") as file:
            write = csv.writer(file, lineterminator="\n").writerow
            write(["id", "text_a"])
            for i in range(number, count, files):
                write([i, " ".join(rng.choices(words, k=rng.randint(3, 9)))])
    return sum(path.stat().st_size for path in folder.iterdir())


def train(folder: pathlib.Path) -> str:
    """Trains an adapter on two texts; returns its folder."""
    import adapter_bert_tf as abt

    texts, labels = ["It never came.", "It came on time."] * 30, ["bad", "good"] * 30
    abt.train(texts, labels, dev=(texts, labels), output_dir=str(folder / "out"))
    return str(folder / "out" / "adapter")


def measure(case: Case, adapter: str, rows: pathlib.Path, out: pathlib.Path) -> dict[str, Any]:
    """Runs a case; returns seconds, and the memory of the workers."""
    adapter_flag = f"--adapter_dir={adapter}"
    if case.system == PREDICT:
        paths = sorted(rows.iterdir())
        whole = out / "all.csv"  # One file, as `predict` takes it.
        out.mkdir()
        with open(whole, "w") as file:
            lines = (path.read_text().splitlines()[i > 0 :] for i, path in enumerate(paths))
            file.writelines(f"{line}\n" for line in itertools.chain.from_iterable(lines))
        words = ["predict", adapter_flag, f"--predict_file={whole}", f"--output={out}/o.csv"]
    else:
        words = ["score", adapter_flag, f"--input={rows}", f"--output={out}/o", *FLAGS[case.system]]
    start, most = time.perf_counter(), list[tuple[float, float]]()
    one_core = partial(os.sched_setaffinity, 0, {0}) if case.system == ON_ONE_CORE else None
    process = subprocess.Popen([*COMMAND, *words], cwd=runner.ROOT, preexec_fn=one_core)
    watcher = threading.Thread(target=lambda: most.extend(_watch(process, start)))
    watcher.start()
    if status := process.wait():
        raise SystemExit(f"{words} ended with {status}")
    seconds = time.perf_counter() - start
    watcher.join()
    early = max((mb for at, mb in most if at < seconds / 10), default=0)
    found = {"seconds": seconds, "early_mb": early, "most_mb": max(mb for _, mb in most)}
    if case.system != PREDICT:
        summary = json.loads((out / "o" / "summary.json").read_text())
        shards = [path.read_bytes() for path in (out / "o").glob("*.csv")]
        written = sum(shard.count(b"\n") - 1 for shard in shards)
        if not written == summary["rows"] == case.rows:
            raise SystemExit(f"{written} rows were written of {case.rows}")
        found["word_pieces"] = summary["word_pieces"]
    return found


def _watch(process: subprocess.Popen, start: float) -> Iterator[tuple[float, float]]:
    """Yields times and the most resident memory of a process and those that it started, in MB."""
    while process.poll() is None:
        sizes = [_resident_mb(pid) for pid in (process.pid, *_children(process.pid))]
        yield time.perf_counter() - start, max(sizes)
        time.sleep(EVERY)


def _children(pid: int) -> list[int]:
    try:
        found = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        threads = pathlib.Path(f"/proc/{pid}/task").iterdir()
        found += [c for t in threads for c in (t / "children").read_text().split()]
    except OSError:
        return []
    return sorted({int(child) for child in found})


def _resident_mb(pid: int) -> float:
    try:
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * resource.getpagesize() / 2**20


def run_missing(rows: int, many: int) -> None:
    """Measures the missing cases one after the other, and adds their rows."""
    missing = LEDGER.missing(plan(rows, many))
    if not missing:
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        adapter = train(folder)
        for case in missing:
            data, out = folder / f"rows-{case.rows}", folder / f"out-{len(os.listdir(folder))}"
            if not data.exists():
                write_rows(data, case.rows, FILES)
            row = case._asdict() | measure(case, adapter, data, out)
            print(row, flush=True)
            LEDGER.add("rows", [row | measuring.describe_machine(measuring.PACKAGES)])


def scoring(rows_by_key: ledger.Rows) -> list[str]:
    """Returns Markdown lines: time, rates and memory of each system."""
    lines = ["| command | rows | rows/s | most memory of a process, MB: first tenth, whole run |"]
    lines.append("| --- | --- | --- | --- |")
    for system, rows in dict.fromkeys((row["system"], row["rows"]) for row in rows_by_key.values()):
        own = [r for r in rows_by_key.values() if (r["system"], r["rows"]) == (system, rows)]
        rates = sorted(rows / row["seconds"] for row in own)
        rate = f"{rates[len(rates) // 2]:,.0f}"
        if len(rates) > 1:
            rate = f"{sum(rates) / len(rates):,.0f} ({rates[0]:,.0f}-{rates[-1]:,.0f})"
        early, most = (max(row[name] for row in own) for name in ("early_mb", "most_mb"))
        lines.append(f"| {system} | {rows:,} | {rate} | {early:,.0f}, {most:,.0f} |")
    return lines


def write_tables() -> None:
    """Rewrites the table in docs/scoring.md."""
    LEDGER.write_tables(scoring)


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        rows=(ROWS, "Rows of the short runs."),
        many=(MANY, "Rows of the long run."),
    )
