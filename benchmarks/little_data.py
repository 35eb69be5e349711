"""Few examples: adapters with frozen and trained pooler, and the PyTorch library `adapters`.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.little_data --data_dir=FOLDER  # runs what is missing
    python -m benchmarks.little_data --table  # only rewrites docs/results.md

FOLDER holds `glue/MRPC/...`. All train adapters of size 64 at a learning rate of 1e-3 on the same
examples, drawn with the run's seed, for the same number of steps; the dev set is the whole one.
"""

import collections
import json
import os
import pathlib
import shlex
import shutil
import statistics
import tempfile

import numpy as np
import safetensors.numpy

from benchmarks import ledger, measuring, runner, training_code

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "little_data",
    page=ROOT / "docs" / "results.md",
    key=lambda row: (row["task"], row["examples"], row["system"], row["seed"]),
)
FOLDERS = {"mrpc": "glue/MRPC", "cola": "glue/CoLA", "rte": "glue/RTE"}
METRIC = {"mrpc": "accuracy", "cola": "mcc", "rte": "accuracy"}
# About as many steps for each of the small ones; "all" as in the other tables of the page.
EPOCHS = {100: 30, 300: 10, 1000: 3, None: 5}
CELLS = [(task, n) for n in (1000, 300, 100) for task in FOLDERS] + [("mrpc", None), ("cola", None)]
BATCH, RATE, SIZE = 32, 1e-3, 64
PEER = "adapters (PyTorch)"
ANY_LENGTHS = ["--train_pooler", "--group_by_length=no"]
FRESH = "BASE_WITH_A_FRESH_POOLER"
# Ours with what the peer has otherwise: one thing of it, another, and all but that.
TRIED = {
    "pooler begun anew": ["--train_pooler", f"--base_model={FRESH}"],
    "any lengths": ANY_LENGTHS,
    "the peer's settings": [
        *ANY_LENGTHS,
        "--notrain_layer_norm",
        "--optimizer=adamw_unclipped",
        "--adapter=benchmarks/peer_adapter.json",
    ],
}
OURS = {
    "pooler frozen": ["--train_pooler=false"],
    "pooler trained": ["--train_pooler"],
    **TRIED,
}
SYSTEMS = (*OURS, PEER)
LABELS = {
    "pooler begun anew": "new pooler kernel",
    "any lengths": "batches of any length",
    "the peer's settings": "settings of `adapters`",
}
SEEDS = range(5)
Run = collections.namedtuple("Run", "task examples system seed")


def plan():
    """Every run; a seed of all small cells first, the whole tasks last."""
    runs = [Run(*cell, s, seed) for seed in SEEDS for cell in CELLS for s in SYSTEMS]
    # What is only tried, where the default's seeds differ least.
    runs = [run for run in runs if run.system not in TRIED or run.examples == 1000]
    return sorted(runs, key=lambda run: run.examples is None)


def command(run, data_dir="DATA", output_dir="OUT", fresh=FRESH):
    """The command line of a run of ours; `fresh` is the folder of the base with a fresh pooler."""
    return [
        "run_classifier.py",
        f"--task_name={run.task}",
        f"--data_dir={os.path.join(data_dir, FOLDERS[run.task])}",
        "--do_train",
        "--do_eval",
        "--max_seq_length=128",
        f"--train_batch_size={BATCH}",
        "--eval_batch_size=32",
        f"--num_train_epochs={EPOCHS[run.examples]}",
        *([f"--max_train_examples={run.examples}"] if run.examples else []),
        f"--adapter_size={SIZE}",
        f"--learning_rate={RATE}",
        *(word.replace(FRESH, fresh) for word in OURS[run.system]),
        f"--seed={run.seed}",
        f"--output_dir={output_dir}",
    ]


def measure_ours(run, data_dir):
    """Results of a run of ours, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        output, fresh = os.path.join(folder, "output"), os.path.join(folder, "base")
        if f"--base_model={FRESH}" in OURS[run.system]:
            write_fresh(fresh, run.seed)
        record = runner.record_of(command(run, data_dir, output, fresh), output)
    return {
        "steps": record["global_step"],
        "trained": record["parameters"]["trained"],
        "data_sha256": record["data_sha256"],
        "eval": record["eval"],
        "command": shlex.join(["python", *command(run)]),
    }


def write_fresh(folder, seed):
    """Writes the default base with a pooler that has the spread BERT's begins with."""
    from adapter_bert_tf.base import load_base

    base = load_base()
    shutil.copytree(os.path.dirname(base.weights_path), folder)
    path = os.path.join(folder, os.path.basename(base.weights_path))
    tensors = safetensors.numpy.load_file(path)
    kernel = tensors["pooler.dense.weight"]
    fresh = np.random.default_rng(seed).normal(0.0, 0.02, kernel.shape).astype(kernel.dtype)
    safetensors.numpy.save_file(tensors | {"pooler.dense.weight": fresh}, path)


def measure_peer(run, data_dir):
    """Results of the peer on the same examples; for a process of its own."""
    run = Run(*json.loads(run))
    from adapter_bert_tf.data.examples import limit, read_examples
    from adapter_bert_tf.task_types import table_type
    from adapter_bert_tf.tasks import find_task
    from benchmarks import peer

    task = find_task(run.task)
    examples = read_examples(task, os.path.join(data_dir, FOLDERS[run.task]), ["train", "dev"])
    examples["train"] = limit(examples["train"], run.examples, run.seed)
    kind = table_type(task.task_type)
    labels = {split: kind.encode(task, part) for split, part in examples.items()}
    steps = int(len(examples["train"]) / BATCH * EPOCHS[run.examples])
    model, tokenizer = peer.load(SIZE, len(task.labels), seed=run.seed)
    rows = {s: peer.tokenized(tokenizer, part, labels[s]) for s, part in examples.items()}
    for _ in peer.train(model, peer.batches(tokenizer, rows["train"], BATCH, True), steps, RATE):
        pass
    outputs = peer.probabilities(model, peer.batches(tokenizer, rows["dev"], BATCH, False))
    found = kind.evaluate(task.metrics, labels["dev"], outputs)
    return {
        "steps": steps,
        "trained": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "data_sha256": {split: part.digest() for split, part in examples.items()},
        "eval": {f"eval_{name}": value for name, value in found.items()},
        "versions": {"adapters": peer.version()},
    }


def measure_apart(run, data_dir):
    """`measure_peer` in a process of its own: PyTorch and TensorFlow are better apart."""
    return measuring.apart("benchmarks.little_data", json.dumps(run), data_dir)


def run_missing(data_dir, only):
    """Runs the missing cases, then those whose code trains differently from the current code."""
    code = training_code.digest(of_several=False)
    ours, peers = (LEDGER.missing(plan(), wanted) for wanted in (code, None))
    missing = [run for run in plan() if run in (ours if run.system in OURS else peers)]
    there = LEDGER.rows()
    missing = [run for run in missing if run.system in only.split(",")]
    missing.sort(key=lambda run: (run in there, run.examples is None))
    for number, run in enumerate(missing, 1):
        print(f"***** {number} of {len(missing)}: {tuple(run)}", flush=True)
        measure = measure_ours if run.system in OURS else measure_apart
        made_by = {ledger.CODE: code} if run.system in OURS else {}
        LEDGER.add("rows", [run._asdict() | measure(run, data_dir) | made_by])


def little_data(there):
    """Markdown lines: a row a cell, the median and range of each system."""
    systems = [system for system in SYSTEMS if system not in TRIED]
    rows = [
        "| task | examples | steps | " + " | ".join(systems) + " |",
        "| --- | --- | --- |" + " --- |" * len(systems),
    ]
    for cell in CELLS:
        found = [_seeds(there, cell, system) for system in systems]
        if any(found):
            steps = next(row["steps"] for group in found for row in group)
            cells = " | ".join(_shown(group) for group in found)
            rows.append(f"| {cell[0]} | {cell[1] or 'all'} | {steps} | {cells} |")
    return rows


def little_data_tried(there):
    """Markdown lines: a row a system, on 1,000 examples, and how far it is from the peer."""
    cells = [cell for cell in CELLS if cell[1] == 1000]
    rows = [
        "| system | " + " | ".join(task for task, _ in cells) + " | difference from `adapters` |",
        "| --- |" + " --- |" * (len(cells) + 1),
    ]
    for system in SYSTEMS:
        shown = [_shown(_seeds(there, cell, system)) for cell in cells]
        rows.append(
            f"| {LABELS.get(system, system)} | {' | '.join(shown)} | "
            f"{from_the_peer(there, cells, system)} |"
        )
    return rows


def from_the_peer(there, cells, system):
    """`-1.0 ± 0.4 (15 pairs)`: mean difference at equal seeds, and its standard error."""
    pairs = [
        [there.get(Run(*cell, name, seed)) for name in (system, PEER)]
        for cell in cells
        for seed in SEEDS
    ]
    differences = [_score(ours) - _score(peers) for ours, peers in pairs if ours and peers]
    if system == PEER or len(differences) < 2:
        return ""
    error = statistics.stdev(differences) / len(differences) ** 0.5
    return f"{statistics.mean(differences):+.1f} ± {error:.1f} ({len(differences)} pairs)"


def _seeds(there, cell, system):
    """The rows of a system in a cell."""
    return [there[run] for seed in SEEDS if (run := Run(*cell, system, seed)) in there]


def _score(row):
    return 100 * row["eval"][f"eval_{METRIC[row['task']]}"]


def _shown(rows):
    values = [_score(row) for row in rows]
    if not values:
        return ""
    mark = LEDGER.mark("rows", rows) if rows[0]["system"] in OURS else ""
    if len(values) == 1:
        return f"{values[0]:.1f} (1 seed){mark}"
    seeds = "" if len(values) == len(SEEDS) else f", {len(values)} seeds"
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f}{seeds}){mark}"


def write_tables():
    """Replaces the tables in docs/results.md."""
    LEDGER.write_tables(little_data, little_data_tried)


if __name__ == "__main__" and not runner.worker(measure_peer):
    runner.command(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        only=(",".join(SYSTEMS), "Systems, with commas between."),
    )
