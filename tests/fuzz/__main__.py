"""`python -m tests.fuzz --minutes=30`: every kind in a process of its own, two at a time."""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

ROW = "{:<22}{:>9}{:>9}{:>9}{:>7}"
AT_ONCE = 2
SLACK = 400  # Seconds that a process may take to begin, and to make a find small.


def main() -> int:
    """Runs all kinds; the exit status is 1 if there was a find."""
    from tests.fuzz.kinds import KINDS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--kinds", default=",".join(KINDS), help="names, with commas between")
    parser.add_argument("--seed", type=int, default=None, help="of the first search")
    parsed = parser.parse_args()
    names = parsed.kinds.split(",")
    seed = random.randrange(10**9) if parsed.seed is None else parsed.seed
    seconds = parsed.minutes * 60 * min(AT_ONCE, len(names)) / len(names)
    print(f"{len(names)} kinds, {seconds:.0f} s each, from seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        results = _all(names, seconds, seed, folder)
    print(ROW.format("kind", "inputs", "refused", "accepted", "finds"))
    for name, found in results.items():
        print(ROW.format(name, *(f"{found[key]:,}" for key in FIELDS)))
    print(ROW.format("all", *(f"{sum(r[key] for r in results.values()):,}" for key in FIELDS)))
    return int(any(found["finds"] for found in results.values()))


FIELDS = ("inputs", "refused", "accepted", "finds")


def _all(names, seconds, seed, folder):
    """Dict from kind to its counts."""
    waiting, running, results = list(names), {}, {}
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                name = waiting.pop(0)
                running[name] = (_start(name, seconds, seed, folder), time.monotonic())
            time.sleep(0.5)
            for name, (process, started) in list(running.items()):
                if time.monotonic() - started > seconds + SLACK:
                    process.kill()
                if process.poll() is not None:
                    results[name] = _result(_path(folder, name), name, process.returncode)
                    del running[name]
    finally:
        for process, _ in running.values():
            process.kill()
    return {name: results[name] for name in names}


def _start(name, seconds, seed, folder):
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.fuzz.worker",
        name,
        str(seconds),
        str(seed),
    ]
    return subprocess.Popen([*command, _path(folder, name)])


def _path(folder, name):
    return os.path.join(folder, name.replace(" ", "_"))


def _result(path, name, status):
    """The counts that a process wrote; one that ended otherwise is a find."""
    found = dict.fromkeys(FIELDS, 0)
    if os.path.exists(path):
        with open(path) as file:
            found |= json.load(file)
    if status:
        found["finds"] += 1
        case = f"{path}.case"
        said = open(case).read() if os.path.exists(case) else "unknown"  # noqa: SIM115
        print(f"FIND {name}: the process ended with status {status} at {said}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
