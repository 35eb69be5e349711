"""The tables of docs/results.md, from runs on real data with one JSON line each.

    python -m benchmarks.results --data_dir=FOLDER              # runs what is missing
    python -m benchmarks.results --data_dir=FOLDER --only=mrpc,squad --workers=2
    python -m benchmarks.results --data_dir=FOLDER --again      # also rows of older code
    python -m benchmarks.results --table                        # only rewrites docs/results.md

FOLDER holds `glue/MRPC/...`, `extra/20_newsgroups/...` and `squad/train-v1.1.json`. Every run is
a `run_classifier.py` or `run_squad.py` in its own process; its line is added to
benchmarks/results/classification.jsonl, squad.jsonl or faster.jsonl when it ends.
"""

import pathlib
import shlex
import statistics
import subprocess
import tempfile

from benchmarks import ledger, measuring, runner, training_code
from benchmarks.result_cases import (
    CLASSIFICATION,
    COMPARED,
    FASTER,
    METHODS,
    SQUAD,
    TASKS,
    command,
    plan,
)

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS,
    page=ROOT / "docs" / "results.md",
    key=lambda row: (row["task"], row["method"], row["seed"]),
)


def run(task, method, seed, data_dir, core):
    """Runs one case on one core and adds its line."""
    print("*****", task, method, seed, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        arguments = command(task, method, seed, data_dir, folder)
        record = runner.run_record(arguments, folder, core)
    examples = record["global_step"] * record["flags"]["train_batch_size"]
    row = {
        "task": task,
        "method": method,
        "seed": seed,
        "command": shlex.join(["python", *command(task, method, seed)]),
        "eval": record["eval"],
        "trained": record["parameters"]["trained"],
        "total": record["parameters"]["total"],
        "steps": record["global_step"],
        # CPU time of one core hardly depends on other load of the machine.
        "cpu_seconds": round(record["train_cpu_seconds"], 1),
        "examples_per_cpu_second": round(examples / record["train_cpu_seconds"], 1),
        "examples": record["examples"],
        "data_sha256": record["data_sha256"],
        "versions": record["versions"],
        "code": _revision(),
        ledger.CODE_KEY: training_code.digest(of_several=False),
    }
    LEDGER.add(_file(task, method), [row])


def _file(task, method):
    """The file for a case's rows; `analyze size_map` reads those of the paper's methods."""
    if method in FASTER:
        return "faster"
    return SQUAD if task == SQUAD else "classification"


def _revision():
    process = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stdout.strip() or None


def run_missing(data_dir, only, workers, again=False):
    """Runs the missing cases on `workers` cores; with `again`, also rows of older code."""
    code = training_code.digest(of_several=False) if again else None
    runner.run_on_cores(
        lambda: LEDGER.missing([key for key in plan() if key[0] in only.split(",")], code),
        lambda key, core: run(*key, data_dir, core),
        workers,
    )


def score(row, metric):
    """Returns a metric of a row in percent."""
    results = row["eval"]
    return results[metric] if metric in results else 100 * results[f"eval_{metric}"]


def format_cell(rows, metric):
    """Formats median and range of a metric in percent, such as `81.1 (80.9-82.4)`."""
    return measuring.spread([score(row, metric) for row in rows])


def comparison(rows_by_key):
    """Returns Markdown lines: full fine-tuning against adapters, and the average difference."""
    lines = [
        "| task | metric | full | adapters 64 | difference | seeds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    differences = []
    for task in CLASSIFICATION:
        metric = TASKS[task].metric
        groups = [
            [
                rows_by_key[task, method, seed]
                for seed in range(TASKS[task].seeds)
                if (task, method, seed) in rows_by_key
            ]
            for method in COMPARED
        ]
        if not all(groups):
            continue
        full, adapters = (
            statistics.median(score(row, metric) for row in group) for group in groups
        )
        differences.append(adapters - full)
        lines.append(
            f"| {task}{_code_mark([*groups[0], *groups[1]])} | {metric} | "
            f"{format_cell(groups[0], metric)} | {format_cell(groups[1], metric)} | "
            f"{differences[-1]:+.1f} | {min(map(len, groups))} |"
        )
    mean = f"{statistics.mean(differences):+.2f}" if differences else ""
    return [*lines, f"| **mean** | | | | **{mean}** | |"]


def details(rows_by_key):
    """Returns Markdown lines: every task and method, with parameters, time and speed."""
    lines = [
        "| task | method | metric | dev | trained | share | seconds | examples/s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for task, method, rows in _group_rows(rows_by_key, CLASSIFICATION):
        metric = TASKS[task].metric
        lines.append(
            f"| {task} | {method}{_code_mark(rows)} | {metric} | {format_cell(rows, metric)} "
            f"| {_costs(rows)} |"
        )
    return lines


def squad(rows_by_key):
    """Returns Markdown lines: SQuAD, every method."""
    lines = [
        "| method | exact match | F1 | seeds | trained | share | seconds | questions/s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    return lines + [
        f"| {method}{_code_mark(rows)} | {format_cell(rows, 'exact_match')} "
        f"| {format_cell(rows, 'f1')} | {len(rows)} | {_costs(rows)} |"
        for _, method, rows in _group_rows(rows_by_key, [SQUAD])
    ]


def _group_rows(rows_by_key, tasks):
    """Returns (task, method, rows) in the order of the tables."""
    groups = [
        (
            task,
            method,
            [row for (t, m, _), row in sorted(rows_by_key.items()) if (t, m) == (task, method)],
        )
        for task in tasks
        for method in METHODS
    ]
    return [group for group in groups if group[2]]


def _code_mark(rows):
    """A mark for rows whose code trains differently from the newest row's."""
    return LEDGER.mark(_file(rows[0]["task"], rows[0]["method"]), rows)


def _costs(rows):
    """Formats cells: trained parameters, their proportion, seconds and examples/s."""
    seconds, speed = (
        statistics.median(row[name] for row in rows)
        for name in ("cpu_seconds", "examples_per_cpu_second")
    )
    share = rows[0]["trained"] / rows[0]["total"]
    return f"{rows[0]['trained']:,} | {share:.2%} | {seconds:.0f} | {speed:.0f}"


def commands(rows_by_key):
    """Returns Markdown lines: the command of each task and method, seeds apart."""
    command_by_case = {
        (t, m): row["command"] for (t, m, _), row in sorted(rows_by_key.items(), reverse=True)
    }
    return [
        "```",
        *(command_by_case[t, m] for t in TASKS for m in METHODS if (t, m) in command_by_case),
        "```",
    ]


def write_tables():
    """Rewrites the tables in docs/results.md."""
    LEDGER.write_tables(comparison, details, squad, commands)


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        only=(",".join(TASKS), "Tasks, separated by commas."),
        workers=(1, "Concurrent runs, one per core."),
        again=(False, "Also rows of older code."),
    )
