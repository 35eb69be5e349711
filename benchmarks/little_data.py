"""Few examples: adapters with frozen and trained pooler, and the PyTorch library `adapters`.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.little_data --data_dir=FOLDER  # runs what is missing
    python -m benchmarks.little_data --table  # only rewrites docs/results.md

FOLDER holds `glue/MRPC/...`. All systems train adapters of size 64 at a learning rate of 1e-3 on
the same examples, drawn with the run's seed, for the same number of steps; the dev set is complete.
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
# Similar numbers of steps for the small sizes; "all" is as in the other tables of the page.
EPOCHS = {100: 30, 300: 10, 1000: 3, None: 5}
CELLS = [(task, n) for n in (1000, 300, 100) for task in FOLDERS] + [("mrpc", None), ("cola", None)]
BATCH, RATE, SIZE = 32, 1e-3, 64
PEER = "adapters (PyTorch)"
ANY_LENGTHS = ["--train_pooler", "--group_by_length=no"]
FRESH = "BASE_WITH_A_FRESH_POOLER"
# This package with settings of the peer: one, another, and all others.
EXPERIMENTS = {
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
    **EXPERIMENTS,
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
    """Returns all runs; one seed of all small cells first, the complete tasks last."""
    runs = [Run(*cell, s, seed) for seed in SEEDS for cell in CELLS for s in SYSTEMS]
    # Experiments run on the size where the default's seeds differ least.
    runs = [run for run in runs if run.system not in EXPERIMENTS or run.examples == 1000]
    return sorted(runs, key=lambda run: run.examples is None)


def command(run, data_dir="DATA", output_dir="OUT", fresh_folder=FRESH):
    """Returns the command line of a run; `fresh_folder` has the base with a fresh pooler."""
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
        *(word.replace(FRESH, fresh_folder) for word in OURS[run.system]),
        f"--seed={run.seed}",
        f"--output_dir={output_dir}",
    ]


def measure_ours(run, data_dir):
    """Runs this package in a separate process; returns its results."""
    with tempfile.TemporaryDirectory() as folder:
        output, fresh_folder = os.path.join(folder, "output"), os.path.join(folder, "base")
        if f"--base_model={FRESH}" in OURS[run.system]:
            write_fresh_pooler(fresh_folder, run.seed)
        record = runner.run_record(command(run, data_dir, output, fresh_folder), output)
    return {
        "steps": record["global_step"],
        "trained": record["parameters"]["trained"],
        "data_sha256": record["data_sha256"],
        "eval": record["eval"],
        "command": shlex.join(["python", *command(run)]),
    }


def write_fresh_pooler(folder, seed):
    """Writes the default base with a pooler initialized like BERT's."""
    from adapter_bert_tf.base import load_base

    base = load_base()
    shutil.copytree(os.path.dirname(base.weights_path), folder)
    path = os.path.join(folder, os.path.basename(base.weights_path))
    tensors = safetensors.numpy.load_file(path)
    kernel = tensors["pooler.dense.weight"]
    kernel_values = np.random.default_rng(seed).normal(0.0, 0.02, kernel.shape).astype(kernel.dtype)
    safetensors.numpy.save_file(tensors | {"pooler.dense.weight": kernel_values}, path)


def measure_peer(run, data_dir):
    """Measures the peer on the same examples; runs in a separate process."""
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
    rows = {s: peer.tokenize(tokenizer, part, labels[s]) for s, part in examples.items()}
    for _ in peer.train(model, peer.batches(tokenizer, rows["train"], BATCH, True), steps, RATE):
        pass
    outputs = peer.probabilities(model, peer.batches(tokenizer, rows["dev"], BATCH, False))
    results = kind.evaluate(task.metrics, labels["dev"], outputs)
    return {
        "steps": steps,
        "trained": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "data_sha256": {split: part.digest() for split, part in examples.items()},
        "eval": {f"eval_{name}": value for name, value in results.items()},
        "versions": {"adapters": peer.version()},
    }


def measure_peer_in_process(run, data_dir):
    """Runs `measure_peer` in a separate process, so PyTorch does not share one with TensorFlow."""
    return measuring.run_in_process("benchmarks.little_data", json.dumps(run), data_dir)


def run_missing(data_dir, only):
    """Runs the missing cases, then those whose code trains differently from the current code."""
    code = training_code.digest(of_several=False)
    own, peers = (LEDGER.missing(plan(), wanted) for wanted in (code, None))
    missing = [run for run in plan() if run in (own if run.system in OURS else peers)]
    rows_by_key = LEDGER.rows()
    missing = [run for run in missing if run.system in only.split(",")]
    missing.sort(key=lambda run: (run in rows_by_key, run.examples is None))
    for number, run in enumerate(missing, 1):
        print(f"***** {number} of {len(missing)}: {tuple(run)}", flush=True)
        measure = measure_ours if run.system in OURS else measure_peer_in_process
        code_entry = {ledger.CODE_KEY: code} if run.system in OURS else {}
        LEDGER.add("rows", [run._asdict() | measure(run, data_dir) | code_entry])


def little_data(rows_by_key):
    """Returns Markdown lines: a row for each cell, with median and range of each system."""
    systems = [system for system in SYSTEMS if system not in EXPERIMENTS]
    rows = [
        "| task | examples | steps | " + " | ".join(systems) + " |",
        "| --- | --- | --- |" + " --- |" * len(systems),
    ]
    for cell in CELLS:
        results = [_seed_rows(rows_by_key, cell, system) for system in systems]
        if any(results):
            steps = next(row["steps"] for group in results for row in group)
            cells = " | ".join(_format_rows(group) for group in results)
            rows.append(f"| {cell[0]} | {cell[1] or 'all'} | {steps} | {cells} |")
    return rows


def little_data_tried(rows_by_key):
    """Returns Markdown lines: a row for each system on 1,000 examples."""
    cells = [cell for cell in CELLS if cell[1] == 1000]
    rows = [
        "| system | " + " | ".join(task for task, _ in cells) + " | difference from `adapters` |",
        "| --- |" + " --- |" * (len(cells) + 1),
    ]
    for system in SYSTEMS:
        texts = [_format_rows(_seed_rows(rows_by_key, cell, system)) for cell in cells]
        rows.append(
            f"| {LABELS.get(system, system)} | {' | '.join(texts)} | "
            f"{difference_from_peer(rows_by_key, cells, system)} |"
        )
    return rows


def difference_from_peer(rows_by_key, cells, system):
    """Formats mean difference at equal seeds and standard error: `-1.0 ± 0.4 (15 pairs)`."""
    pairs = [
        [rows_by_key.get(Run(*cell, name, seed)) for name in (system, PEER)]
        for cell in cells
        for seed in SEEDS
    ]
    differences = [_score(own) - _score(peers) for own, peers in pairs if own and peers]
    if system == PEER or len(differences) < 2:
        return ""
    error = statistics.stdev(differences) / len(differences) ** 0.5
    return f"{statistics.mean(differences):+.1f} ± {error:.1f} ({len(differences)} pairs)"


def _seed_rows(rows_by_key, cell, system):
    """Returns the rows of a system in a cell."""
    return [rows_by_key[run] for seed in SEEDS if (run := Run(*cell, system, seed)) in rows_by_key]


def _score(row):
    return 100 * row["eval"][f"eval_{METRIC[row['task']]}"]


def _format_rows(rows):
    values = [_score(row) for row in rows]
    if not values:
        return ""
    mark = LEDGER.mark("rows", rows) if rows[0]["system"] in OURS else ""
    if len(values) == 1:
        return f"{values[0]:.1f} (1 seed){mark}"
    seeds = "" if len(values) == len(SEEDS) else f", {len(values)} seeds"
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f}{seeds}){mark}"


def write_tables():
    """Rewrites the tables in docs/results.md."""
    LEDGER.write_tables(little_data, little_data_tried)


if __name__ == "__main__" and not runner.run_worker(measure_peer):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of all data."),
        only=(",".join(SYSTEMS), "Systems, separated by commas."),
    )
