"""Five tasks trained together with every multi-task method, and each task alone.

    python -m benchmarks.several_tasks --data_dir=FOLDER --work=FOLDER2  # runs what is missing
    python -m benchmarks.several_tasks --table                           # only writes the table

FOLDER holds `glue/MRPC/...`; FOLDER2 holds the runs' output folders, where an interrupted command
resumes from its checkpoint. 2,500 steps of 32, temperature 10, the weights of the last
step. `--only="per_task"` runs those whose method and seed match a regular expression.
"""

import collections
import os
import pathlib
import re
import shlex
import statistics

from benchmarks import ledger, measuring, results, runner, training_code

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "several_tasks",
    page=ROOT / "docs" / "results.md",
    key=lambda row: (row["method"], row["seed"]),
)
# Each task's folder and the metric for the average.
TASKS = {
    "cola": ("glue/CoLA", "mcc"),
    "mrpc": ("glue/MRPC", "accuracy"),
    "rte": ("glue/RTE", "accuracy"),
    "sts-b": ("glue/STS-B", "spearman"),
    "mnli": ("glue/MNLI-subset", "accuracy"),
}
EXAMPLES, BATCH, STEPS = 26_560, 32, 2_500
EPOCHS = round((STEPS + 0.5) * BATCH / EXAMPLES, 5)  # Steps are rounded down.
METHODS = {
    "multitask_full": ["--tuning=multitask_full", "--learning_rate=1e-4"],
    "multitask_adapters": ["--tuning=multitask_adapters", "--learning_rate=1e-3"],
    "per_task_adapters": ["--tuning=per_task_adapters", "--learning_rate=1e-3"],
    "hyperformer++": ["--tuning=hyperformer++", "--learning_rate=3e-4"],
    "hyperformer++ at 1e-3": ["--tuning=hyperformer++", "--learning_rate=1e-3"],
    "hyperformer": ["--tuning=hyperformer", "--learning_rate=3e-4"],
    "pals": ["--tuning=pals", "--learning_rate=2e-5"],
}
THREE_SEEDS = ("per_task_adapters", "hyperformer++")
SEPARATE_METHODS = (
    "full",
    "adapters 64",
    "adapters 12",
)  # Methods of `benchmarks.results`, a run a task.
Run = collections.namedtuple("Run", "method seed")
PLAN = [
    *(Run(method, 0) for method in METHODS),
    *(Run(method, seed) for method in THREE_SEEDS for seed in (1, 2)),
]


def command(run, data_dir="DATA", folder="OUT"):
    """Returns the command line of a run."""
    return training_command(METHODS[run.method], run.seed, EPOCHS, data_dir, folder)


def training_command(flags, seed, epochs, data_dir, folder):
    """Returns the command line that trains all tasks with `flags`."""
    tasks = ",".join(f"{name}={data_dir}/{folder_name}" for name, (folder_name, _) in TASKS.items())
    return [
        "run_classifier.py",
        f"--task_name={tasks}",
        "--do_train",
        "--do_eval",
        "--max_seq_length=128",
        f"--train_batch_size={BATCH}",
        "--eval_batch_size=32",
        f"--num_train_epochs={epochs}",
        *flags,
        f"--seed={seed}",
        f"--output_dir={folder}",
    ]


def run_missing(data_dir, work, only):
    """Runs the missing cases."""
    missing = [run for run in LEDGER.missing(PLAN) if re.search(only, " ".join(map(str, run)))]
    for number, run in enumerate(missing, 1):
        print(f"***** {number} of {len(missing)}: {tuple(run)}", flush=True)
        folder = os.path.join(os.path.abspath(work), f"{run.method}_{run.seed}")
        record = runner.run_record(command(run, data_dir, folder), folder)
        assert record["global_step"] == STEPS, record["global_step"]
        LEDGER.add("rows", [make_row(run, record, command(run))])


def make_row(run, record, shown_command):
    """Makes the ledger row of a run; `shown_command` has no paths of this machine."""
    return run._asdict() | {
        "steps": record["global_step"],
        "parameters": record["parameters"],
        "cpu_seconds": round(record["train_cpu_seconds"], 1),
        "data_sha256": record["data_sha256"],
        "eval": record["eval"],
        "command": shlex.join(["python", *shown_command]),
        ledger.CODE_KEY: training_code.digest(),
    }


def several_tasks(rows_by_key):
    """Returns Markdown lines: a row for each method, with medians and ranges of seeds."""
    all_rows = results.LEDGER.rows()
    result_methods = {method for _, method, _ in all_rows}
    return table(rows_by_key, METHODS) + [
        _separate_runs(method, all_rows) for method in SEPARATE_METHODS if method in result_methods
    ]


def table(rows_by_key, methods):
    """Returns Markdown lines: a row for each method with results."""
    rows = [
        "| method | " + " | ".join([*TASKS, "average"]) + " | seeds | trained per task |",
        "| --- |" + " --- |" * (len(TASKS) + 3),
    ]
    for method in methods:
        group = [row for (name, _), row in rows_by_key.items() if name == method]
        if group:
            names = [f"eval_{task}_{metric}" for task, (_, metric) in TASKS.items()]
            cells = [[row["eval"][name] for row in group] for name in (*names, "eval_average")]
            trained = group[0]["parameters"]["trained"] / len(TASKS)
            rows.append(_line(method, cells, len(group), trained))
    return rows


def _separate_runs(method, all_rows):
    """Formats a row of separate runs, with the average of the tasks' medians."""
    cells, trained = [], []
    for task, (_, metric) in TASKS.items():
        group = [row for (t, m, _), row in all_rows.items() if (t, m) == (task, method)]
        cells.append([row["eval"][f"eval_{metric}"] for row in group])
        trained += [row["trained"] for row in group[:1]]
    seeds = max(map(len, cells), default=0)
    average = [statistics.mean(map(statistics.median, cells))] if all(cells) else []
    return _line(f"{method}, each alone", [*cells, average], seeds, statistics.mean(trained))


def _line(name, cells, seeds, trained):
    return f"| {name} | {' | '.join(map(_cell, cells))} | {seeds} | {trained:,.0f} |"


def _cell(values):
    return measuring.spread([100 * value for value in values]) or "-"


def write_tables():
    """Rewrites the table in its page."""
    LEDGER.write_tables(several_tasks)


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        work=(None, "Folder for the runs' output."),
        only=("", "Regular expression."),
    )
