"""The command line of all benchmarks: runs the missing cases, then writes the tables."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent import futures
from typing import Any, TypeVar

Case = TypeVar("Case", bound=Hashable)

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run_benchmark(
    about: str, run: Callable[..., None], write_tables: Callable[[], None], **options: Any
) -> None:
    """Parses the arguments, runs missing cases unless `--table` is given, and writes the tables.

    Args:
      about: the benchmark's docstring; its first line is the help.
      run: function of the options' values, in their order.
      write_tables: function that writes the tables.
      **options: dict from name to (default, help); options with default None are required.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    for name, (default, text) in options.items():
        kind = {"action": "store_true"} if default is False else {"type": type(default or "")}
        parser.add_argument(f"--{name}", default=default, help=text, **kind)
    parser.add_argument("--table", action="store_true", help="Only write the tables.")
    values = vars(parser.parse_args())
    if not values.pop("table"):
        if missing := [f"--{name}" for name, value in values.items() if value is None]:
            parser.error(f"{', '.join(missing)}: required.")
        run(*values.values())
    write_tables()


def run_record(
    arguments: Sequence[str],
    folder: str | os.PathLike[str],
    core: int | None = None,
    root: str | os.PathLike[str] = ROOT,
) -> dict[str, Any]:
    """Runs a command of this project in its own process, and reads its `run.json`.

    Args:
      arguments: the script and its flags.
      folder: its output folder.
      core: to run on alone; None for all.
      root: of the code that runs it.
    """
    subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        check=True,
        stdout=subprocess.DEVNULL,
        preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
    )
    record: dict[str, Any] = json.loads(pathlib.Path(folder, "run.json").read_text())
    return record


def export_base(
    adapter: str | os.PathLike[str], folder: str | os.PathLike[str], *flags: str
) -> None:
    """Writes a base that a command trained with `--tuning=full`; `flags` are of `store export`."""
    files = [str(adapter), "--format=base", f"--output={folder}", *flags]
    subprocess.run(
        [sys.executable, "-m", "adapter_bert_tf", "store", "export", *files], cwd=ROOT, check=True
    )


def run_on_cores(
    missing: Callable[[], Sequence[Case]], run: Callable[[Case, int | None], None], workers: int
) -> None:
    """Runs cases, `workers` at a time, until none is missing. After an error, none is begun.

    Args:
      missing: function that returns the cases known so far that have no row.
      run: function of a case and its core; None for all cores, which a single worker has.
      workers: number of cores.
    """
    begun: set[Case] = set()
    running: set[Case] = set()
    changed = threading.Condition()
    failed = threading.Event()

    def next_case() -> Case | None:
        """Waits while no case is left but a running one may make another known."""
        with changed:
            while not failed.is_set():
                for case in missing():
                    if case not in begun:
                        begun.add(case)
                        running.add(case)
                        return case
                if not running:
                    break
                changed.wait()
        return None

    def work(core: int | None) -> None:
        while (case := next_case()) is not None:
            try:
                run(case, core)
            except BaseException:
                failed.set()
                raise
            finally:
                with changed:
                    running.remove(case)
                    changed.notify_all()

    with futures.ThreadPoolExecutor(workers) as pool:
        cores = range(workers) if workers > 1 else [None]
        works = [pool.submit(work, core) for core in cores]
        try:
            for future in works:
                future.result()
        finally:
            failed.set()  # Also when this thread is interrupted; else all cases run first.


def run_worker(measure: Callable[..., Any]) -> bool:
    """Measures one case and prints the result, if this process was started for that.

    Args:
      measure: function of the arguments after `--measure`, all text; what it returns is
        printed as JSON.
    """
    if sys.argv[1:2] != ["--measure"]:
        return False
    print(json.dumps(measure(*sys.argv[2:])))
    return True
