"""The tables of docs/results.md: real runs, one JSON line each, taken up again.

    python -m benchmarks.results --data_dir=FOLDER              # runs what is not there yet
    python -m benchmarks.results --data_dir=FOLDER --only=mrpc,squad --workers=2
    python -m benchmarks.results --data_dir=FOLDER --again      # also what is of older code
    python -m benchmarks.results --table                        # only rewrites docs/results.md

FOLDER holds `glue/MRPC/...`, `extra/20_newsgroups/...` and `squad/train-v1.1.json`. Every run is
one `run_classifier.py` or `run_squad.py` in a process of its own; its line is added to
benchmarks/results/classification.jsonl or squad.jsonl when it ends.
"""

import argparse
import collections
import json
import os
import pathlib
import queue
import shlex
import statistics
import subprocess
import sys
import tempfile
from concurrent import futures

from benchmarks import ledger, training_code

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ROOT / "benchmarks" / "results",
    page=ROOT / "docs" / "results.md",
    key=lambda row: (row["task"], row["method"], row["seed"]),
)
COMMON = ["--do_train", "--do_eval", "--eval_batch_size=32"]
SQUAD = "squad"

# Epochs are of full and top-k fine-tuning, and of the methods that train little.
Case = collections.namedtuple("Case", "folder epochs small_epochs seeds metric")
TASKS = {
    "mrpc": Case("glue/MRPC", 5, 5, 3, "accuracy"),
    "cola": Case("glue/CoLA", 5, 10, 3, "mcc"),
    "rte": Case("glue/RTE", 5, 10, 3, "accuracy"),
    "sts-b": Case("glue/STS-B", 5, 5, 3, "spearman"),
    "crowdflower_corporate_messaging": Case(
        "extra/crowdflower_corporate_messaging", 5, 10, 3, "accuracy"
    ),
    "crowdflower_primary_emotions": Case(
        "extra/crowdflower_primary_emotions", 10, 20, 3, "accuracy"
    ),
    "20_newsgroups": Case("extra/20_newsgroups", 2, 3, 1, "accuracy"),
    SQUAD: Case("squad", 2, 3, 3, "f1"),
}
CLASSIFICATION = [task for task in TASKS if task != SQUAD]
# A rate of its own for each kind of method; docs/results.md says how it was found.
SMALL, WIDE, LARGE = (f"--learning_rate={rate}" for rate in ("1e-3", "3e-4", "1e-4"))
METHODS = {
    "full": ["--tuning=full", LARGE],
    "adapters 64": ["--adapter_size=64", SMALL],
    "adapters 2": ["--adapter_size=2", SMALL],
    "adapters 8": ["--adapter_size=8", SMALL],
    "adapters 256": ["--adapter_size=256", WIDE],
    "pfeiffer 64": ["--adapter=pfeiffer", SMALL],
    "top_k 1": ["--tuning=top_k", "--top_k=1", LARGE],
    "top_k 2": ["--tuning=top_k", "--top_k=2", LARGE],
    "top_k 3": ["--tuning=top_k", "--top_k=3", LARGE],
    "layer_norm": ["--tuning=layer_norm", SMALL],
    "head": ["--tuning=head", SMALL],
}
COMPARED = ("full", "adapters 64")
ABLATED = ("mrpc", "cola", "sts-b")


def plan():
    """(task, method, seed) of every run, the comparison first, what takes an hour last."""
    runs = [
        (task, method, seed)
        for seed in range(3)
        for task in CLASSIFICATION
        for method in COMPARED
        if seed < TASKS[task].seeds
    ]
    runs += [
        (task, method, 0)
        for task in ABLATED
        for method in METHODS
        if method not in (*COMPARED, "adapters 2")
    ]
    runs += [(SQUAD, method, 0) for method in (*COMPARED, "adapters 8", "adapters 2")]
    runs += [(SQUAD, "adapters 64", seed) for seed in (1, 2)]
    return sorted(runs, key=lambda run: run[0] == "20_newsgroups" or run[0] == SQUAD)


def command(task, method, seed, data_dir="DATA", output_dir="OUT"):
    """The command line of a run."""
    case = TASKS[task]
    epochs = case.epochs if LARGE in METHODS[method] else case.small_epochs
    folder = os.path.join(data_dir, case.folder)
    if task == SQUAD:
        own = [
            "run_squad.py",
            f"--train_file={folder}/train-v1.1.json",
            f"--predict_file={folder}/dev-v1.1.json",
            "--max_seq_length=384",
            "--train_batch_size=12",
        ]
    else:
        own = [
            "run_classifier.py",
            f"--task_name={task}",
            f"--data_dir={folder}",
            "--max_seq_length=128",
            "--train_batch_size=32",
        ]
    return [
        *own,
        *COMMON,
        f"--num_train_epochs={epochs}",
        *METHODS[method],
        f"--seed={seed}",
        f"--output_dir={output_dir}",
    ]


def run(task, method, seed, data_dir, core):
    """Runs one case on one core and adds its line."""
    print("*****", task, method, seed, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, *command(task, method, seed, data_dir, folder)],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        record = json.loads(pathlib.Path(folder, "run.json").read_text())
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
        # Of one core: hardly changed by what else the machine does.
        "cpu_seconds": round(record["train_cpu_seconds"], 1),
        "examples_per_cpu_second": round(examples / record["train_cpu_seconds"], 1),
        "examples": record["examples"],
        "data_sha256": record["data_sha256"],
        "versions": record["versions"],
        "code": _revision(),
        ledger.CODE: training_code.digest(),
    }
    LEDGER.add(_file(task), [row])


def _file(task):
    """Of the rows of a task."""
    return SQUAD if task == SQUAD else "classification"


def _revision():
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None


def run_missing(data_dir, only, workers, again=False):
    """Runs what has no line yet, on so many cores; `again`, also what is of older code."""
    code = training_code.digest() if again else None
    missing = LEDGER.missing((key for key in plan() if key[0] in only), code)
    cores = queue.Queue()
    for core in range(workers):
        cores.put(core)

    def on_a_free_core(key):
        core = cores.get()
        try:
            run(*key, data_dir, core)
        finally:
            cores.put(core)

    with futures.ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(on_a_free_core, key) for key in missing]:
            done.result()


def score(row, metric):
    """A metric of a row, in percent, as SQuAD's official scores are already."""
    results = row["eval"]
    return results[metric] if metric in results else 100 * results[f"eval_{metric}"]


def cell(rows, metric):
    """`81.1 (80.9-82.4)`: median and range of a metric, in percent."""
    values = [score(row, metric) for row in rows]
    middle = f"{statistics.median(values):.1f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.1f}-{max(values):.1f})"


def comparison(there):
    """Markdown lines: full fine-tuning against adapters, and the average difference."""
    lines = [
        "| task | metric | full | adapters 64 | difference | seeds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    differences = []
    for task in CLASSIFICATION:
        metric = TASKS[task].metric
        groups = [
            [
                there[task, method, seed]
                for seed in range(TASKS[task].seeds)
                if (task, method, seed) in there
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
            f"| {task} | {metric} | {cell(groups[0], metric)} | "
            f"{cell(groups[1], metric)} | {differences[-1]:+.1f} | "
            f"{min(map(len, groups))} |"
        )
    mean = f"{statistics.mean(differences):+.2f}" if differences else ""
    return [*lines, f"| **mean** | | | | **{mean}** | |"]


def details(there):
    """Markdown lines: every task and method, with parameters, time and speed."""
    lines = [
        "| task | method | metric | dev | trained | share | seconds | examples/s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for task, method, rows in _groups(there, CLASSIFICATION):
        metric = TASKS[task].metric
        lines.append(
            f"| {task} | {method}{_mark(rows)} | {metric} | {cell(rows, metric)} | {_costs(rows)} |"
        )
    return lines


def squad(there):
    """Markdown lines: SQuAD, every method."""
    lines = [
        "| method | exact match | F1 | seeds | trained | share | seconds | questions/s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    return lines + [
        f"| {method}{_mark(rows)} | {cell(rows, 'exact_match')} | {cell(rows, 'f1')} | {len(rows)} "
        f"| {_costs(rows)} |"
        for _, method, rows in _groups(there, [SQUAD])
    ]


def _groups(there, tasks):
    """(task, method, rows) in the order of the two tables."""
    groups = [
        (
            task,
            method,
            [row for (t, m, _), row in sorted(there.items()) if (t, m) == (task, method)],
        )
        for task in tasks
        for method in METHODS
    ]
    return [group for group in groups if group[2]]


def _mark(rows):
    """A mark for what was measured with other code than the newest row."""
    newest = LEDGER.newest_code(_file(rows[0]["task"]))
    return "" if all(row.get(ledger.CODE) == newest for row in rows) else f" {ledger.OLDER}"


def _costs(rows):
    """Cells: trained parameters, their share, seconds and examples/s."""
    seconds, speed = (
        statistics.median(row[name] for row in rows)
        for name in ("cpu_seconds", "examples_per_cpu_second")
    )
    share = rows[0]["trained"] / rows[0]["total"]
    return f"{rows[0]['trained']:,} | {share:.2%} | {seconds:.0f} | {speed:.0f}"


def commands(there):
    """Markdown lines: the command of each task and method, seeds apart."""
    shown = {(t, m): row["command"] for (t, m, _), row in sorted(there.items(), reverse=True)}
    return ["```", *(shown[t, m] for t in TASKS for m in METHODS if (t, m) in shown), "```"]


def write_tables():
    """Replaces the tables in docs/results.md."""
    LEDGER.write_tables(comparison, details, squad, commands)


def main():
    """Runs what the arguments say, and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", help="Folder of all data.")
    parser.add_argument("--only", default=",".join(TASKS), help="Tasks, separated by commas.")
    parser.add_argument("--workers", type=int, default=1, help="Runs side by side, one a core.")
    parser.add_argument("--again", action="store_true", help="Also what is of older code.")
    parser.add_argument("--table", action="store_true", help="Only write docs/results.md.")
    arguments = parser.parse_args()
    if not arguments.table:
        if not arguments.data_dir:
            parser.error("--data_dir is missing: the folder with glue/, extra/ and squad/.")
        only = arguments.only.split(",")
        run_missing(arguments.data_dir, only, arguments.workers, arguments.again)
    write_tables()


if __name__ == "__main__":
    main()
