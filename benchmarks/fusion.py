"""AdapterFusion and single adapters: six members, RTE and MRPC as targets, three seeds.

    python -m benchmarks.fusion --data_dir=FOLDER --work=FOLDER2   # runs what is missing
    python -m benchmarks.fusion --table                            # only rewrites docs/results.md

FOLDER holds `glue/MRPC/...`. FOLDER2 holds the runs' output folders with the members of the
fusions; an interrupted command resumes from its checkpoint. `--only="rte fusion"` runs
those whose task, method and seed match a regular expression, on one of several cores.

Members are Pfeiffer adapters of size 64 with frozen LayerNorms; those of the target tasks have the
seed of the fusion.
"""

import collections
import os
import pathlib
import re
import shlex

from benchmarks import ledger, measuring, results, runner, training_code

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "fusion",
    page=ROOT / "docs" / "results.md",
    key=lambda row: (row["task"], row["method"], row["seed"]),
)
# Epochs are as in the other tables of the page.
Task = collections.namedtuple("Task", "folder epochs metric")
TASKS = {
    "rte": Task("glue/RTE", 10, "accuracy"),
    "mrpc": Task("glue/MRPC", 5, "accuracy"),
    "sts-b": Task("glue/STS-B", 5, "spearman"),
    "cola": Task("glue/CoLA", 10, "mcc"),
    "mnli": Task("glue/MNLI-subset", 3, "accuracy"),
    "qqp": Task("glue/QQP-subset", 3, "accuracy"),
}
TARGETS, SEEDS = ("rte", "mrpc"), range(3)
MEMBER, FUSION, FULL = "pfeiffer 64", "fusion of 6", "full"
OTHERS = "fusion of 5 others"  # Without the member that was trained on the same examples.
FUSE = ["--tuning=fusion", "--learning_rate=1e-4"]
METHODS = {
    MEMBER: ["--adapter=pfeiffer", "--notrain_layer_norm", "--learning_rate=1e-3"],
    FUSION: FUSE,
    OTHERS: FUSE,
}
FOLDERS = {MEMBER: "pfeiffer", FUSION: "fusion", OTHERS: "others"}
Run = collections.namedtuple("Run", "task method seed")


def plan():
    """Returns all runs: members before the fusions that need them."""
    members = [Run(task, MEMBER, 0) for task in TASKS]
    for seed in SEEDS:
        members += [Run(task, MEMBER, seed) for task in TARGETS if seed]
    first = [Run(task, FUSION, 0) for task in TARGETS]
    rest = [Run(task, FUSION, seed) for seed in SEEDS[1:] for task in TARGETS]
    others = [Run(task, OTHERS, seed) for seed in SEEDS for task in TARGETS]
    return [*members[: len(TASKS)], *first, *members[len(TASKS) :], *rest, *others]


def run_folder(run, work="WORK"):
    """Returns the output folder of a run."""
    return os.path.join(work, f"{run.task}_{FOLDERS[run.method]}_{run.seed}")


def member_runs(run):
    """The runs whose adapters are members of a fusion."""
    tasks = [task for task in TASKS if run.method == FUSION or task != run.task]
    return [Run(task, MEMBER, run.seed if task in TARGETS else 0) for task in tasks]


def command(run, data_dir="DATA", work="WORK"):
    """Returns the command line of a run."""
    task = TASKS[run.task]
    adapters = [f"{one.task}={run_folder(one, work)}/adapter" for one in member_runs(run)]
    return [
        "run_classifier.py",
        f"--task_name={run.task}",
        f"--data_dir={os.path.join(data_dir, task.folder)}",
        "--do_train",
        "--do_eval",
        "--max_seq_length=128",
        "--train_batch_size=32",
        "--eval_batch_size=32",
        f"--num_train_epochs={task.epochs}",
        *METHODS[run.method],
        *([f"--fuse={','.join(adapters)}"] if run.method != MEMBER else []),
        f"--seed={run.seed}",
        f"--output_dir={run_folder(run, work)}",
    ]


def run_missing(data_dir, work, only):
    """Runs the missing cases, and members whose adapters are not in the work folder."""
    rows_by_key, work = LEDGER.rows(), os.path.abspath(work)
    for number, run in enumerate(plan(), 1):
        if not re.search(only, " ".join(map(str, run))):
            continue
        record = pathlib.Path(run_folder(run, work), "run.json")
        if tuple(run) in rows_by_key and (record.exists() or run.method != MEMBER):
            continue
        print(f"***** {number} of {len(plan())}: {tuple(run)}", flush=True)
        run_json = runner.run_record(command(run, data_dir, work), run_folder(run, work))
        if tuple(run) not in rows_by_key:
            LEDGER.add("rows", [make_row(run, run_json)])


def make_row(run, record):
    """The row of a run."""
    return run._asdict() | {
        "steps": record["global_step"],
        "trained": record["parameters"]["trained"],
        "cpu_seconds": round(record["train_cpu_seconds"], 1),
        "data_sha256": record["data_sha256"],
        "eval": record["eval"],
        "command": shlex.join(["python", *command(run)]),
        ledger.CODE_KEY: training_code.digest(),
    }


def fusion(rows_by_key):
    """Returns Markdown lines: a row for each task and method; for targets also full fine-tuning."""
    rows = [
        "| task | method | metric | dev | seeds | trained |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    all_rows = results.LEDGER.rows()
    for task in TASKS:
        for method, ledgers in (*((method, rows_by_key) for method in METHODS), (FULL, all_rows)):
            group = [row for (t, m, _), row in ledgers.items() if (t, m) == (task, method)]
            if group and (task in TARGETS or method != FULL):
                rows.append(_line(task, method, group))
    return rows


def _line(task, method, found):
    metric = TASKS[task].metric
    values = [100 * row["eval"][f"eval_{metric}"] for row in found]
    return (
        f"| {task} | {method} | {metric} | {measuring.spread(values)} "
        f"| {len(values)} | {found[0]['trained']:,} |"
    )


def write_tables():
    """Rewrites the table in docs/results.md."""
    LEDGER.write_tables(fusion)


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        work=(None, "Folder for the runs' output."),
        only=("", "Regular expression."),
    )
