"""Few examples of each of five tasks: HyperFormer++ on all against separate adapters.

    python -m benchmarks.low_resource --data_dir=FOLDER    # runs what is missing
    python -m benchmarks.low_resource --table              # only writes the table and the picture

This follows the low-resource figure of Mahabadi et al. 2021. FOLDER is that of
`benchmarks.several_tasks`. HyperFormer++ makes 500 steps of 32 on all five tasks, an adapter 100.
"""

import collections
import io
import os
import pathlib
import shlex
import statistics
import tempfile

from benchmarks import ledger, runner, several_tasks, training_code

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "low_resource",
    page=ROOT / "docs" / "results.md",
    key=lambda row: (row["method"], row["examples"], row["task"], row["seed"]),
)
PICTURE = ROOT / "docs" / "images" / "low_resource.png"
SIZES = (100, 500, 1000, 2000, 4000)
TOGETHER, ALONE = "hyperformer++", "adapters 12"
STEPS, STEPS_ALONE, BATCH = 500, 100, several_tasks.BATCH
SEEDS = range(1)
Run = collections.namedtuple("Run", "method examples task seed")


def plan():
    """Returns all runs; the joint method has one run for each size."""
    return [
        run
        for seed in SEEDS
        for n in SIZES
        for run in (
            Run(TOGETHER, n, "all", seed),
            *(Run(ALONE, n, task, seed) for task in several_tasks.TASKS),
        )
    ]


# Training examples of each task.
COUNTS = {"cola": 8551, "mrpc": 3668, "rte": 2490, "sts-b": 5749, "mnli": 6102}


def command(run, data_dir="DATA", folder="OUT"):
    """Returns the command line of a run."""
    sizes = {task: min(run.examples, count) for task, count in COUNTS.items()}
    if run.method == TOGETHER:
        names = ",".join(
            f"{t}={data_dir}/{folder_name}" for t, (folder_name, _) in several_tasks.TASKS.items()
        )
        examples, steps = sum(sizes.values()), STEPS
        flags = [f"--task_name={names}", f"--tuning={TOGETHER}", "--learning_rate=3e-4"]
    else:
        folder_of_task = os.path.join(data_dir, several_tasks.TASKS[run.task][0])
        examples, steps = sizes[run.task], STEPS_ALONE
        flags = [f"--task_name={run.task}", f"--data_dir={folder_of_task}"]
        flags += ["--adapter_size=12", "--learning_rate=1e-3"]
    return [
        "run_classifier.py",
        *flags,
        "--do_train",
        "--do_eval",
        "--max_seq_length=128",
        f"--train_batch_size={BATCH}",
        "--eval_batch_size=32",
        f"--max_train_examples={run.examples}",
        f"--num_train_epochs={round((steps + 0.5) * BATCH / examples, 5)}",
        f"--seed={run.seed}",
        f"--output_dir={folder}",
    ]


def run_missing(data_dir, only):
    """Runs the missing cases."""
    missing = [run for run in LEDGER.missing(plan()) if run.method in only.split(",")]
    for number, run in enumerate(missing, 1):
        print(f"***** {number} of {len(missing)}: {tuple(run)}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            record = runner.run_record(command(run, data_dir, folder), folder)
        steps = STEPS if run.method == TOGETHER else STEPS_ALONE
        assert record["global_step"] == steps, record["global_step"]
        row = {
            "steps": steps,
            "data_sha256": record["data_sha256"],
            "eval": record["eval"],
            "command": shlex.join(["python", *command(run)]),
            ledger.CODE_KEY: training_code.digest(),
        }
        LEDGER.add("rows", [run._asdict() | row])


def score(rows_by_key, method, examples):
    """Returns the tasks' mean metric in percent, of seed 0; None if one is missing."""
    names = {task: metric for task, (_, metric) in several_tasks.TASKS.items()}
    values = []
    for task, metric in names.items():
        is_multitask = method == TOGETHER
        row = rows_by_key.get(Run(method, examples, "all" if is_multitask else task, 0))
        if row is None:
            return None
        values.append(row["eval"][f"eval_{task}_{metric}" if is_multitask else f"eval_{metric}"])
    return 100 * statistics.mean(values)


def low_resource(rows_by_key):
    """Returns Markdown lines: a row a method, a column a number of examples."""
    rows = [
        "| method | " + " | ".join(f"{n:,}" for n in SIZES) + " |",
        "| --- |" + " --- |" * len(SIZES),
    ]
    for method in (TOGETHER, ALONE):
        results = [score(rows_by_key, method, n) for n in SIZES]
        cells = ["" if value is None else f"{value:.1f}" for value in results]
        rows.append(f"| {method} | {' | '.join(cells)} |")
    return rows


def draw(rows_by_key):
    """Draws the curves as PNG bytes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    for method, mark in ((TOGETHER, "o-"), (ALONE, "s--")):
        results = [(n, score(rows_by_key, method, n)) for n in SIZES]
        axes.plot(*zip(*[p for p in results if p[1] is not None], strict=True), mark, label=method)
    axes.set_xscale("log")
    axes.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
    axes.set_xlabel("training examples of each task")
    axes.set_ylabel("average over five tasks, dev (%)")
    axes.set_title(f"{STEPS} steps together, {STEPS_ALONE} alone; seed 0", fontsize=10)
    axes.grid(color="#dddddd")
    axes.legend()
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    return content.getvalue()


def write_tables():
    """Rewrites the table in its page and the picture."""
    LEDGER.write_tables(low_resource)
    PICTURE.write_bytes(draw(LEDGER.rows()))


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        only=(f"{TOGETHER},{ALONE}", "Methods, separated by commas."),
    )
