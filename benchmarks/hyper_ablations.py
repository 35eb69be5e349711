"""Ablations of HyperFormer (Mahabadi et al. 2021, Table 4) on five tasks.

    python -m benchmarks.hyper_ablations --data_dir=FOLDER --work=FOLDER2  # runs what is missing
    python -m benchmarks.hyper_ablations --table                           # only writes the table

FOLDER and FOLDER2 are those of `benchmarks.several_tasks`. 500 steps of 32, seed 0.
"""

import collections
import os
import pathlib

from benchmarks import ledger, runner, several_tasks

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "hyper_ablations",
    page=ROOT / "docs" / "results.md",
    key=lambda row: (row["method"], row["seed"]),
)
STEPS = 500
EPOCHS = round((STEPS + 0.5) * several_tasks.BATCH / several_tasks.EXAMPLES, 5)
WHOLE = ("--tuning=hyperformer", "--learning_rate=3e-4")
PLAIN_NORMS, FROZEN_NORMS = "--noconditional_layer_norm", "--notrain_layer_norm"
METHODS = {
    "HyperFormer": WHOLE,
    "without adapters": ("--tuning=multitask_layer_norm", "--learning_rate=1e-3"),
    "without conditional LayerNorms": (*WHOLE, PLAIN_NORMS),
    "without the task projector": (*WHOLE, "--notask_projector"),
    "without training the base's LayerNorms": (*WHOLE, FROZEN_NORMS),
    "without both LayerNorms": (*WHOLE, PLAIN_NORMS, FROZEN_NORMS),
}
Run = collections.namedtuple("Run", "method seed")
PLAN = [Run(method, 0) for method in METHODS]


def command(run, data_dir="DATA", folder="OUT"):
    """Returns the command line of a run."""
    return several_tasks.training_command(METHODS[run.method], run.seed, EPOCHS, data_dir, folder)


def run_missing(data_dir, work):
    """Runs the missing cases."""
    missing = LEDGER.missing(PLAN)
    for number, run in enumerate(missing, 1):
        print(f"***** {number} of {len(missing)}: {tuple(run)}", flush=True)
        folder = os.path.join(os.path.abspath(work), f"ablation_{PLAN.index(run)}")
        record = runner.run_record(command(run, data_dir, folder), folder)
        assert record["global_step"] == STEPS, record["global_step"]
        LEDGER.add("rows", [several_tasks.make_row(run, record, command(run))])


def hyper_ablations(rows_by_key):
    """Returns Markdown lines: a row for each part left out."""
    return several_tasks.table(rows_by_key, METHODS)


def write_tables():
    """Rewrites the table in its page."""
    LEDGER.write_tables(hyper_ablations)


if __name__ == "__main__":
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        work=(None, "Folder for the runs' output."),
    )
