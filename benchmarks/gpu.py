"""Everything that is measured on a GPU, row by row, in at most eight minutes.

    python -m benchmarks.gpu --data_dir=FOLDER          # measures what is missing
    python -m benchmarks.gpu --tiny --only=step,score   # tiny models, also on a CPU
    python -m benchmarks.gpu --table                    # prints the rows that there are

FOLDER holds `glue/MRPC`. Each row is measured in its own process (`benchmarks/gpu_rows.py`) with a
time limit, and written as a JSON line as soon as it is there: the same command continues with what
is missing or failed. Times are measured alone; the other rows share the card, `TOGETHER` at once.
Rows of PyTorch run with the modules of `--peer_path` instead of `PYTHONPATH`.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from benchmarks import ledger, runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ledger.RESULTS / "gpu"
TOGETHER = 4

# Args:
#   function: of `gpu_rows`.
#   arguments: its keywords.
#   seconds: its time limit.
#   alone: whether nothing else may run.
Row = collections.namedtuple("Row", "function arguments seconds alone")


def step(base, length, seconds=90, **flags):
    """A row of training steps of this project; `flags` are those of the command."""
    arguments = {"base": base, "length": length, "cache": "cold"} | flags
    return Row("step", arguments, seconds, True)


def peer(base, length, mode, seconds=60):
    """A row of training steps of `adapters`."""
    return Row("peer_step", {"base": base, "length": length, "mode": mode}, seconds, True)


# By name, the most important first.
PLAN = {
    "step base auto": step("base", 128, precision="auto", cache="kept"),
    "step base auto warm": step("base", 128, precision="auto", cache="warm"),
    "peer base compiled": peer("base", 128, "compile", 90),
    "peer base bf16": peer("base", 128, "bf16"),
    "peer base eager": peer("base", 128, "eager"),
    "step minilm auto": step("minilm", 64, precision="auto"),
    "peer minilm eager": peer("minilm", 64, "eager"),
    "numbers": Row("numbers", {}, 120, False),
    "methods": Row("methods", {}, 180, False),
    "saved model": Row("saved_model", {}, 150, False),
    "deterministic": Row("deterministic", {}, 120, False),
    "trials": Row("trials", {}, 180, False),
    "command": Row("command", {}, 90, True),
    "command warm": Row("command", {}, 60, True),
    "score": Row("score", {}, 60, True),
    "peer score": Row("peer_score", {}, 60, True),
    "step base float32": step("base", 128, precision="float32"),
    "step base auto no XLA": step("base", 128, precision="auto", jit_compile=False),
    "step base float32 no XLA": step("base", 128, precision="float32", jit_compile=False),
    "step base auto Triton": step("base", 128, precision="auto", xla="triton"),
    "step minilm auto no XLA": step("minilm", 64, precision="auto", jit_compile=False),
}
# Rows that find the compiled programs of another row, which runs in the same call.
AFTER = {"step base auto warm": "step base auto", "command warm": "command"}


def measure(name, options, most_seconds):
    """Measures a row in its own process; returns its JSON: results, or `failed` with the reason."""
    row = PLAN[name]
    arguments = row.arguments | {"options": options}
    environ = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    if row.function.startswith("peer") and options["peer_path"]:
        environ["PYTHONPATH"] = os.pathsep.join([options["peer_path"], str(ROOT)])
    seconds = row.seconds * (4 if options["tiny"] else 1)  # A CPU takes longer.
    limit, start = min(seconds, most_seconds), time.monotonic()
    command = [sys.executable, "-m", "benchmarks.gpu_rows", row.function, json.dumps(arguments)]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environ,
            text=True,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # With the processes that it has started.
            process.communicate()
            return {"failed": f"no result within {limit:.0f} s"}
        errors.seek(0)
        text = errors.read()
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        return {"failed": text[-1500:] or f"exit status {process.returncode}"}
    return json.loads(lines[-1]) | {"seconds": round(time.monotonic() - start, 1)}


def rows_file(tiny):
    """Returns the path of the rows; git ignores that of tiny models."""
    return FOLDER / ("tiny.jsonl" if tiny else "rows.jsonl")


def read_rows(tiny):
    """Returns a dict from name to the latest result."""
    path = rows_file(tiny)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {row["row"]: row for row in rows}


def run_missing(data_dir, tiny, only, minutes, peer_path):
    """Measures the rows without a result, in the order of `PLAN`."""
    done = {name for name, row in read_rows(tiny).items() if "failed" not in row}
    words = [word for word in only.split(",") if word]
    asked = [n for n, row in PLAN.items() if not words or {n, row.function} & {*words}]
    missing = {name for name in asked if name not in done}
    missing |= {AFTER[name] for name in missing & AFTER.keys()}
    end = time.monotonic() + 60 * minutes
    work = tempfile.mkdtemp(prefix="gpu_rows_")  # Also the cache of compiled programs.
    options = {"data_dir": data_dir, "tiny": tiny, "peer_path": peer_path, "work": work}
    FOLDER.mkdir(parents=True, exist_ok=True)

    def add(name):
        left = end - time.monotonic()
        if left < 10:
            return
        row = {"row": name} | measure(name, options, left)
        with ledger.WRITE_LOCK, rows_file(tiny).open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row)[:1000], flush=True)

    try:
        for alone, names in grouped([name for name in PLAN if name in missing]):
            with concurrent.futures.ThreadPoolExecutor(1 if alone else TOGETHER) as pool:
                list(pool.map(add, names))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def grouped(names):
    """Divides names, in order, into (alone, names) that run one after the other or together."""
    groups = []
    for name in names:
        alone = PLAN[name].alone
        if not groups or groups[-1][0] != alone:
            groups.append((alone, []))
        groups[-1][1].append(name)
    return groups


def write_tables():
    """Prints the rows that there are."""
    for tiny in (False, True):
        for name, row in read_rows(tiny).items():
            values = {k: v for k, v in row.items() if k != "row"}
            print(f"{'tiny ' * tiny}{name}: {json.dumps(values)[:300]}")


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=("", "Folder of all data; empty for the shipped sentences."),
        tiny=(False, "Tiny models and few steps."),
        only=("", "Names of rows or of functions, separated by commas; empty for all."),
        minutes=(8, "No row begins after so many minutes."),
        peer_path=("", "Module path of PyTorch's libraries, where they have their own."),
    )
