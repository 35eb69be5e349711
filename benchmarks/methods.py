"""LoRA, (IA)^3, prefixes, Compacter and adapters on four GLUE tasks, with five seeds each.

    python -m benchmarks.methods --data_dir=FOLDER              # runs what is missing
    python -m benchmarks.methods --data_dir=FOLDER --workers=2
    python -m benchmarks.methods --table                        # only writes the tables

FOLDER holds `glue/{MRPC,CoLA,RTE,STS-B}`. A grid of learning rates is run on MRPC with seed
0, and the two best ones of a method on CoLA; the one with the higher mean is used for all tasks and
seeds. Adapters and full fine-tuning have the rates that were found for the other tables of
docs/results.md. Runs are commands with batches of 32 and at most 128 word pieces, in float32, each
in its own process; its line is added when it ends, so a command that was stopped resumes with the
next run.
"""

import collections
import io
import os
import shlex
import statistics
import tempfile

from benchmarks import ledger, measuring, results, runner, training_code
from benchmarks.result_cases import TASKS


class MethodsLedger(ledger.Ledger):
    """With the runs of `benchmarks.results` that had the same command."""

    def rows(self):
        earlier = {}
        for row in results.LEDGER.rows().values():
            run = Run(row["task"], row["method"], *RATES.get(row["method"], [""])[:1], row["seed"])
            if run.task in COMPARED and run.method in METHODS and _has_command(row, run):
                earlier[run] = row | run._asdict()
        return earlier | super().rows()


LEDGER = MethodsLedger(
    folder=ledger.RESULTS / "methods",
    page=runner.ROOT / "docs" / "results.md",
    key=lambda row: Run(*(row[name] for name in Run._fields)),
)
PICTURE = runner.ROOT / "docs" / "images" / "methods.png"
Run = collections.namedtuple("Run", "task method learning_rate seed")
METHODS = {
    "LoRA 8": ["--adapter=lora"],
    "LoRA 24": ["--adapter=lora", "--adapter_size=24"],
    "(IA)^3": ["--adapter=ia3"],
    "prefix 20": ["--adapter=prefix"],
    "Compacter": ["--adapter=compacter"],
    "adapters 8": ["--adapter_size=8"],
    "adapters 64": ["--adapter_size=64"],
    "full": ["--tuning=full"],
}
# Vectors and factors of Kronecker products need larger steps than kernels.
RATES = {
    "LoRA 8": ("3e-4", "1e-3", "3e-3", "1e-2"),
    "(IA)^3": ("1e-3", "3e-3", "1e-2", "3e-2"),
    "prefix 20": ("1e-4", "3e-4", "1e-3", "3e-3"),
    "Compacter": ("1e-3", "3e-3", "1e-2", "3e-2"),
    "adapters 8": ("1e-3",),
    "adapters 64": ("1e-3",),
    "full": ("1e-4",),
}
RATE_OF = {"LoRA 24": "LoRA 8"}  # alpha is the same, and made for this (Hu et al. 2021, 4.1).
MARKS = {  # In pictures, shape and color.
    "LoRA 8": ("^", "#b35900"),
    "LoRA 24": ("v", "#b35900"),
    "(IA)^3": ("*", "#1b7f4d"),
    "prefix 20": ("P", "#7a3e9d"),
    "Compacter": ("X", "#c2185b"),
    "adapters 8": ("o", "#5b9bd5"),
    "adapters 64": ("o", "#1d4f91"),
    "full": ("s", "#444444"),
}
CHOSEN_ON, COMPARED, SEEDS = ("mrpc", "cola"), ("mrpc", "cola", "rte", "sts-b"), range(5)


def grid(method, rows_by_key):
    """Returns the runs that choose a learning rate, as far as known; none if the rate is known."""
    rates = RATES.get(method, ())
    if len(rates) < 2:
        return []
    runs = [Run(CHOSEN_ON[0], method, rate, SEEDS[0]) for rate in rates]
    if any(run not in rows_by_key for run in runs):
        return runs
    best, second, *_ = sorted(runs, key=lambda run: score(rows_by_key[run]), reverse=True)
    return [*runs, *(run._replace(task=CHOSEN_ON[1]) for run in (best, second))]


def chosen(rows_by_key, method):
    """Returns the learning rate that is known, or the best one of a complete grid, or None."""
    method = RATE_OF.get(method, method)
    runs = grid(method, rows_by_key)
    if not runs:
        return RATES[method][0]
    if any(run not in rows_by_key for run in runs):
        return None
    scores = {run: score(rows_by_key[run]) for run in runs}
    compared = [run.learning_rate for run in runs if run.task == CHOSEN_ON[1]]
    return max(
        compared,
        key=lambda rate: sum(value for run, value in scores.items() if run.learning_rate == rate),
    )


def score(row):
    """The metric of a row's task, 0 to 1."""
    return row["eval"][f"eval_{TASKS[row['task']].metric}"]


def plan(rows_by_key):
    """Returns the runs that are known so far: all grids, then a seed of all tasks after another."""
    rates = {method: chosen(rows_by_key, method) for method in METHODS}
    runs = [run for method in METHODS for run in grid(method, rows_by_key)] + [
        Run(task, method, rate, seed)
        for seed in SEEDS
        for task in COMPARED
        for method, rate in rates.items()
        if rate
    ]
    return list(dict.fromkeys(runs))


def command(run, data_dir="DATA", folder="OUT"):
    """Returns the command line of a run."""
    case = TASKS[run.task]
    epochs = case.epochs if run.method == "full" else case.small_epochs
    return [
        "run_classifier.py",
        f"--task_name={run.task}",
        f"--data_dir={os.path.join(data_dir, case.folder)}",
        *("--do_train", "--do_eval", "--precision=float32"),
        *METHODS[run.method],
        *("--max_seq_length=128", "--train_batch_size=32", "--eval_batch_size=32"),
        f"--num_train_epochs={epochs}",
        f"--learning_rate={run.learning_rate}",
        f"--seed={run.seed}",
        f"--output_dir={folder}",
    ]


def _has_command(row, run):
    flags = {*shlex.split(row["command"]), "--precision=float32"}  # Once it was the default.
    return flags == {"python", *command(run)}


def measure(run, data_dir, core):
    """Runs one case on one core and adds its line."""
    print("*****", *run, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        record = runner.run_record(command(run, data_dir, folder), folder, core)
    steps, seconds = record["global_step"], record["train_cpu_seconds"]
    row = run._asdict() | {
        "eval": record["eval"],
        "steps": steps,
        "trained": record["parameters"]["trained"],
        "cpu_seconds": round(seconds, 1),
        "examples_per_cpu_second": round(steps * 32 / seconds, 1),
        "data_sha256": record["data_sha256"],
        "command": shlex.join(["python", *command(run)]),
        ledger.CODE_KEY: training_code.digest(of_several=False),
    }
    LEDGER.add("rows", [row | measuring.describe_machine()])


def run_missing(data_dir, workers):
    """Runs the missing cases on `workers` cores."""
    data_dir = os.path.abspath(data_dir)
    runner.run_on_cores(
        lambda: LEDGER.missing(plan(LEDGER.rows())),
        lambda run, core: measure(run, data_dir, core),
        workers,
    )


def measured(rows_by_key):
    """Returns a dict from method to its rows with the chosen learning rate."""
    rates = {method: chosen(rows_by_key, method) for method in METHODS}
    rows = {
        method: [row for run, row in rows_by_key.items() if run[1:3] == (method, rate)]
        for method, rate in rates.items()
        if rate
    }
    return {method: own for method, own in rows.items() if own}


def methods(rows_by_key):
    """Returns Markdown lines: medians and ranges of the seeds, by method and task; a picture."""
    metrics = [f"{task}, {TASKS[task].metric}" for task in COMPARED]
    lines = [
        f"| method | rate | trained | examples/s | {' | '.join(metrics)} |",
        "| --- |" + " --- |" * (3 + len(metrics)),
    ]
    for method, rows in measured(rows_by_key).items():
        first, *_ = sorted(rows, key=lambda row: row["task"] != CHOSEN_ON[0])
        # Rows of other benchmarks are of other machines.
        own = (row for row in rows if row["task"] == CHOSEN_ON[0] and "processor" in row)
        speeds = [row["examples_per_cpu_second"] for row in own]
        speed = f"{statistics.median(speeds):.0f}" if speeds else ""
        cells = [
            measuring.spread([100 * score(row) for row in rows if row["task"] == task])
            for task in COMPARED
        ]
        lines.append(
            f"| {method} | {first['learning_rate']} | {first['trained']:,} | {speed} "
            f"| {' | '.join(cells)} |"
        )
    about = "The metric of each task against the number of trained parameters, by method"
    return [*lines, "", f"![{about}](images/{PICTURE.name})"] if lines[2:] else lines


def methods_grid(rows_by_key):
    """Returns Markdown lines: the metrics of all learning rates with seed 0."""
    tasks = [f"{task}, {TASKS[task].metric}, by learning rate" for task in CHOSEN_ON]
    lines = [f"| method | {' | '.join(tasks)} |", "| --- |" + " --- |" * len(tasks)]
    for method in METHODS:
        rates = RATES.get(method, ())
        by_task = [[Run(task, method, rate, SEEDS[0]) for rate in rates] for task in CHOSEN_ON]
        cells = [
            ", ".join(
                f"{run.learning_rate}: {100 * score(rows_by_key[run]):.1f}"
                for run in runs
                if run in rows_by_key and len(rates) > 1
            )
            for runs in by_task
        ]
        lines += [f"| {method} | {' | '.join(cells)} |"] if any(cells) else []
    return lines


def draw(rows_by_key):
    """Draws the metric of each task against the trained parameters, as PNG bytes; None without."""
    rows_by_method = measured(rows_by_key)
    if not rows_by_method:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 6.6), layout="constrained")
    for task, axes in zip(COMPARED, figure.subplots(2, 2).flat, strict=True):
        for method, rows in rows_by_method.items():
            own = [row for row in rows if row["task"] == task]
            values = [100 * score(row) for row in own]
            if own:
                middle = statistics.median(values)
                spread = [[middle - min(values)], [max(values) - middle]]
                mark, color = MARKS[method]
                axes.errorbar(own[0]["trained"], middle, spread, fmt=mark, color=color, ms=7,
                              elinewidth=1, capsize=2, label=method)  # fmt: skip
        axes.set_title(task, fontsize=11)
        axes.set(xscale="log", xlabel="trained parameters", ylabel=f"{TASKS[task].metric} (x 100)")
        axes.grid(color="#dddddd")
        axes.set_axisbelow(True)
    # A task whose runs are missing has no marks.
    handles = {}
    for axes in figure.axes:
        handles |= {label: h for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    names = [method for method in METHODS if method in handles]
    figure.legend([handles[name] for name in names], names, loc="outside lower center", ncols=4)
    figure.suptitle("MiniLM: median and range of the seeds", fontsize=11)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    return content.getvalue()


def write_tables():
    """Rewrites the tables in docs/results.md, and the picture."""
    LEDGER.write_tables(methods, methods_grid)
    picture = draw(LEDGER.rows())
    if picture and ledger.RESULTS == ledger.COMMITTED:
        PICTURE.write_bytes(picture)


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        workers=(1, "Concurrent runs, one per core."),
    )
