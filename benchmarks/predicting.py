"""Prediction from raw texts: rows/s with this project and PyTorch `adapters`; memory of a file.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.predicting --data_dir=FOLDER  # of MRPC
    python -m benchmarks.predicting --table                             # only writes the table

Both predict MRPC's dev set four times, with an adapter of size 64 on MiniLM and batches of 32, in
separate processes and in turns; the first answers do not count. This project uses
`Predictor.stream`. PyTorch tokenizes with its fast tokenizer and pads each batch to its longest
row. The file has 100,000 rows: the shipped sentences, repeated.
"""

import collections
import csv
import itertools
import os
import pathlib
import tempfile
import time

from benchmarks import ledger, measuring, runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "predicting",
    page=ROOT / "docs" / "results.md",
    key=lambda row: (row["case"], row["turn"]),
)
SIZE, BATCH, TIMES, TURNS, LONG = 64, 32, 4, 3, 100_000
OURS, PEER, FILE = "Predictor", "adapters (PyTorch)", "Predictor, a file of 100,000 rows"
Run = collections.namedtuple("Run", "case turn")
PLAN = [*(Run(case, turn) for turn in range(TURNS) for case in (OURS, PEER)), Run(FILE, 0)]


def dev_set(name, data_dir=None):
    """Reads the examples of a task's dev set."""
    from adapter_bert_tf.data.examples import read_examples
    from adapter_bert_tf.tasks import find_task

    task = find_task(name)
    return read_examples(task, data_dir or task.folder, ["dev"])["dev"]


def new_predictor(folder, texts):
    """A predictor with an untrained adapter."""
    import adapter_bert_tf as abt

    model = abt.AdapterModel(abt.load_base())
    model.add_adapter("task", ("0", "1"), abt.AdapterConfig(bottleneck_size=SIZE), texts=texts)
    model.save_adapter("task", folder)
    return abt.Predictor(folder, batch_size=BATCH)


def measure_ours(data_dir):
    """Measures rows/s of this package."""
    rows = dev_set("mrpc", data_dir).texts()
    with tempfile.TemporaryDirectory() as folder:
        predictor = new_predictor(f"{folder}/adapter", 2)
        list(predictor.stream(rows))
        start = time.perf_counter()
        answers = list(predictor.stream(rows * TIMES))
    return {"rows_per_second": len(answers) / (time.perf_counter() - start)}


def measure_peer(data_dir):
    """Measures rows/s of the peer, from texts to probabilities."""
    import torch

    from benchmarks import peer

    torch.set_num_threads(os.cpu_count())
    examples = dev_set("mrpc", data_dir)
    model, tokenizer = peer.load(SIZE, 2)

    def answer(part):
        rows = peer.tokenize(tokenizer, part, [0] * len(part))
        return peer.probabilities(model, peer.batches(tokenizer, rows, BATCH, False))

    answer(examples)
    start = time.perf_counter()
    answers = answer(examples.take(list(range(len(examples))) * TIMES))
    return {"rows_per_second": len(answers) / (time.perf_counter() - start)}


def measure_file(data_dir):
    """Measures rows/s of a long file and the memory that it adds."""
    from adapter_bert_tf.output.provenance import peak_memory_mb

    rows = dev_set("demo_factuality").texts()
    with tempfile.TemporaryDirectory() as folder:
        predictor, source = new_predictor(f"{folder}/adapter", 1), f"{folder}/long.csv"
        with open(source, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text_a"])
            writer.writerows(itertools.islice(itertools.cycle(rows), LONG))
        list(predictor.stream(rows))
        before, start = peak_memory_mb(), time.perf_counter()
        predictor.predict_file(source, f"{folder}/answers.csv")
        times = time.perf_counter() - start
    return {"rows_per_second": LONG / times, "memory_mb": peak_memory_mb() - before}


def measure(case, data_dir):
    """Measures a case; runs in a separate process."""
    return {OURS: measure_ours, PEER: measure_peer, FILE: measure_file}[case](data_dir)


def run_missing(data_dir):
    """Measures the missing cases."""
    for run in LEDGER.missing(PLAN):
        results = measuring.run_in_process("benchmarks.predicting", run.case, data_dir)
        print(tuple(run), results, flush=True)
        LEDGER.add("rows", [run._asdict() | results | measuring.describe_machine()])


def predicting(rows_by_key):
    """Returns Markdown lines: rows/s, and the memory of a long file."""
    lines = ["| | rows/s | more memory, MB |", "| --- | --- | --- |"]
    for case in (OURS, PEER, FILE):
        results = [row for key, row in rows_by_key.items() if key[0] == case]
        if not results:
            continue
        rates = [row["rows_per_second"] for row in results]
        memory = f"{results[0]['memory_mb']:.0f}" if "memory_mb" in results[0] else ""
        lines.append(f"| {case} | {measuring.spread(rates, 0)} | {memory} |")
    return lines


def write_tables():
    """Rewrites the table in docs/results.md."""
    LEDGER.write_tables(predicting)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(__doc__, run_missing, write_tables, data_dir=(None, "Folder of MRPC."))
