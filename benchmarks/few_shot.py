r"""New tasks with few examples: adapters trained on five other tasks, and adapters from scratch.

    python -m benchmarks.several_tasks --data_dir=FOLDER --work=FOLDER2 --only="\+\+ 0|adapters 0"
    python -m benchmarks.few_shot --data_dir=FOLDER --work=FOLDER2     # runs what is missing
    python -m benchmarks.few_shot --table                              # only writes the table

FOLDER2 holds the output folders of `benchmarks.several_tasks`; their adapters (seed 0) are the
start. Every method makes the same steps on the same examples, which are drawn with the run's seed.
"""

import collections
import os
import pathlib
import shlex
import statistics
import tempfile

from benchmarks import ledger, runner, training_code

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "few_shot",
    page=ROOT / "docs" / "results.md",
    key=lambda row: (row["task"], row["examples"], row["method"], row["seed"]),
)
TASKS = ("crowdflower_disasters", "crowdflower_corporate_messaging")
# Epochs of each number of examples: 96 to 156 steps of at most 32.
EPOCHS = {16: 96, 100: 32, 500: 10}
# The run in FOLDER2 with the initial weights, and flags.
METHODS = {
    "hyperformer++": ("hyperformer++_0", ["--tuning=hyperformer++", "--learning_rate=3e-4"]),
    "hyperformer++, its adapter": ("hyperformer++_0", ["--learning_rate=1e-3"]),
    "multitask_adapters": ("multitask_adapters_0", ["--learning_rate=1e-3"]),
    "adapters 12": (None, ["--adapter_size=12", "--learning_rate=1e-3"]),
    "adapters 64": (None, ["--adapter_size=64", "--learning_rate=1e-3"]),
}
SEEDS = range(5)
Run = collections.namedtuple("Run", "task examples method seed")
PLAN = [
    Run(task, examples, method, seed)
    for seed in SEEDS
    for task in TASKS
    for examples in EPOCHS
    for method in METHODS
]


def command(run, data_dir="DATA", work="WORK", folder="OUT"):
    """Returns the command line of a run."""
    start, flags = METHODS[run.method]
    return [
        "run_classifier.py",
        f"--task_name={run.task}",
        f"--data_dir={os.path.join(data_dir, 'extra', run.task)}",
        "--do_train",
        "--do_eval",
        "--max_seq_length=128",
        f"--train_batch_size={min(run.examples, 32)}",
        "--eval_batch_size=32",
        f"--max_train_examples={run.examples}",
        f"--num_train_epochs={EPOCHS[run.examples]}",
        *flags,
        *([f"--init_from={os.path.join(work, start, 'adapter')}"] if start else []),
        f"--seed={run.seed}",
        f"--output_dir={folder}",
    ]


def run_missing(data_dir, work, only):
    """Runs the missing cases."""
    missing = [run for run in LEDGER.missing(PLAN) if run.method in only.split(";")]
    for number, run in enumerate(missing, 1):
        print(f"***** {number} of {len(missing)}: {tuple(run)}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            arguments = command(run, data_dir, os.path.abspath(work), folder)
            record = runner.run_record(arguments, folder)
        row = {
            "steps": record["global_step"],
            "parameters": record["parameters"],
            "data_sha256": record["data_sha256"],
            "init_from": record.get("init_from"),
            "eval": record["eval"],
            "command": shlex.join(["python", *command(run)]),
            ledger.CODE_KEY: training_code.digest(),
        }
        LEDGER.add("rows", [run._asdict() | row])


def few_shot(rows_by_key):
    """Returns Markdown lines: a row a method and task, medians and ranges of the seeds."""
    rows = [
        "| task | method | " + " | ".join(f"{n} examples" for n in EPOCHS) + " |",
        "| --- | --- |" + " --- |" * len(EPOCHS),
    ]
    for task in TASKS:
        for method in METHODS:
            cells = [_cell(rows_by_key, Run(task, n, method, None)) for n in EPOCHS]
            if any(cells):
                rows.append(f"| {task} | {method} | {' | '.join(cells)} |")
    return rows


def _cell(rows_by_key, run):
    keys = [run._replace(seed=seed) for seed in SEEDS]
    values = [100 * _accuracy(rows_by_key[key]) for key in keys if key in rows_by_key]
    if len(values) < 2:
        return f"{values[0]:.1f} (1 seed)" if values else ""
    seeds = "" if len(values) == len(SEEDS) else f", {len(values)} seeds"
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f}{seeds})"


def _accuracy(row):
    """Returns the dev accuracy; methods for several tasks name results by task."""
    results = row["eval"]
    return results.get("eval_accuracy", results.get(f"eval_{row['task']}_accuracy"))


def write_tables():
    """Rewrites the table in its page."""
    LEDGER.write_tables(few_shot)


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        work=(None, "Folder of the runs that provide the initial weights."),
        only=(";".join(METHODS), "Methods, separated by semicolons."),
    )
