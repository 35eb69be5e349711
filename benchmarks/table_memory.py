"""Time and memory of tables whose training rows are on the disk, and training on them.

    python -m benchmarks.table_memory --data_dir=GLUE --rows=2000000     # ten minutes
    python -m benchmarks.table_memory --table                            # only the tables

Generated tables of `rows`, and of a quarter of them, of random whole words are read, checked and
tokenized in processes of their own, as a run does: on the disk, and the smaller one in memory too.
The most resident memory is sampled. Then 300 batches of 32 are read in a random order of all rows,
with the files in the system's cache and without.

QQP of GLUE is trained both ways with the same steps, seeds and dev set.
"""

import os
import pathlib
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks import ledger, measuring, runner
from benchmarks.text_memory import resident_mb

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "table_memory",
    page=runner.ROOT / "docs" / "performance.md",
    key=lambda row: (row["place"], row["rows"], row["seed"]),
)
DISK, MEMORY = "on the disk", "in memory"
LENGTH, BATCH, STEPS, SEEDS = 64, 32, 300, 3
WORDS = 20  # Of a row, about.
EPOCHS, DEV_ROWS, TRAINED_LENGTH = 0.5, 1000, 32  # Of QQP.


def measure(place: str, rows: str, base: str) -> dict[str, Any]:
    """Reads a generated table, and then batches of it, in this process.

    Args:
      place: of the rows, `DISK` or `MEMORY`.
      rows: number of rows.
      base: folder of a base, whose vocabulary is used; empty for the default one.

    Returns:
      dict of `megabytes` of the table, `seconds` of reading, `before_mb` and `most_mb` of memory,
      `stored_mb`, and `batches_per_second` and `cold_batches_per_second`.
    """
    import adapter_bert_tf as abt
    from adapter_bert_tf.base.vocabulary import read_vocabulary
    from adapter_bert_tf.data.batches import batch_encoder
    from adapter_bert_tf.tasks import own_task

    vocabulary = read_vocabulary(f"{base}/vocab.txt") if base else abt.load_base().vocabulary
    encoder = abt.TextEncoder(vocabulary, LENGTH)
    task = own_task("text", label="label", extension="csv")
    batch_encoder(encoder, 1)([[["warm", "up"]]] * 30)
    with tempfile.TemporaryDirectory() as folder:
        megabytes = _write(pathlib.Path(folder, "train.csv"), vocabulary, int(rows))
        before = resident_mb()
        read = _on_disk if place == DISK else _in_memory
        with _Most() as most:
            start = time.perf_counter()
            stored, batches = read(folder, task, encoder)
            seconds = time.perf_counter() - start
            rates = {"batches_per_second": _rate(batches)}
            if stored:
                rates["cold_batches_per_second"] = _rate(batches, stored.paths)
        row = {"megabytes": megabytes, "seconds": seconds, "before_mb": before, "most_mb": most.mb}
        return row | rates | {"stored_mb": stored.size / 1e6 if stored else 0.0}


def _write(path: pathlib.Path, vocabulary: Any, rows: int) -> float:
    """Writes a table of random words with three labels; returns its MB."""
    import numpy as np

    rng = np.random.default_rng(0)
    words = np.array([p for p in vocabulary.pieces if p.isalpha() and p.isascii()], object)
    with open(path, "w") as file:
        file.write("text,label\n")
        for start in range(0, rows, 1000):
            some = min(1000, rows - start)
            chosen, sizes = rng.choice(words, (some, 2 * WORDS)), rng.integers(2, 2 * WORDS, some)
            file.writelines(
                f"{' '.join(line[:size])},{'abc'[size % 3]}\n"
                for line, size in zip(chosen, sizes, strict=True)
            )
    return path.stat().st_size / 1e6


def _on_disk(folder: str, task: Any, encoder: Any) -> tuple[Any, Callable[[], Any]]:
    from adapter_bert_tf.data.labels import ONE_LABEL
    from adapter_bert_tf.data.on_disk.batches import TrainingRows, train_batches
    from adapter_bert_tf.data.on_disk.stored_table import cached_table
    from adapter_bert_tf.data.on_disk.table_pass import TablePass

    source = task.layouts[0]["train"]
    run = TablePass(task, source, folder, ONE_LABEL, None, encoder, None, lambda *_: None)
    table = cached_table(f"{folder}/cache", {}, len(encoder.pieces), run.write)
    rows = TrainingRows(table, lambda numbers: numbers)
    return table, lambda: train_batches(rows, BATCH, STEPS, 0, LENGTH)


def _in_memory(folder: str, task: Any, encoder: Any) -> tuple[Any, Callable[[], Any]]:
    import numpy as np

    from adapter_bert_tf.data.batches import tokenize, train_batches
    from adapter_bert_tf.data.examples import read_source

    examples = read_source(task, task.layouts[0]["train"], folder)
    labels = np.array(["abc".index(label) for label in examples.labels], np.int32)
    features = tokenize(examples, encoder, labels)
    del examples
    return None, lambda: train_batches(features, BATCH, STEPS, 0, LENGTH)


def _rate(batches: Callable[[], Any], dropped: tuple[str, ...] = ()) -> float:
    """Batches a second, without the first; the files of `dropped` leave the system's cache."""
    for path in dropped:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    iterator = iter(batches())
    start = time.perf_counter()
    if not dropped:
        next(iterator)
        start = time.perf_counter()
    count = sum(1 for _ in iterator)
    return count / (time.perf_counter() - start)


class _Most:
    """A context that samples the resident memory; `mb` is the most."""

    def __enter__(self) -> "_Most":
        self.mb, self._ended = resident_mb(), threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._ended.wait(0.02):
            self.mb = max(self.mb, resident_mb())

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def run_missing(data_dir: str, rows: int) -> None:
    """Measures all cases without a row."""
    sizes = [(DISK, rows // 4), (DISK, rows), (MEMORY, rows // 4)]
    machine = measuring.describe_machine(measuring.PACKAGES)
    for place, count, seed in LEDGER.missing([(*size, None) for size in sizes]):
        row = {"place": place, "rows": count, "seed": seed}
        row |= measuring.run_in_process("benchmarks.table_memory", place, str(count), "")
        print(row, flush=True)
        LEDGER.add("rows", [row | machine])
    turns = [(place, None, seed) for seed in range(SEEDS) for place in (MEMORY, DISK)]
    for place, count, seed in LEDGER.missing(turns):
        row = {"place": place, "rows": count, "seed": seed} | _train(data_dir, place, seed)
        print(row, flush=True)
        LEDGER.add("training", [row | machine])


def _train(data_dir: str, place: str, seed: int) -> dict[str, Any]:
    """Trains on QQP; returns rates and metrics."""
    qqp = next(path for path in sorted(pathlib.Path(data_dir).glob("QQP*")) if path.is_dir())
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        flags = ["--task_name=tsv", "--text_a_column=question1", "--text_b_column=question2"]
        flags += ["--label_column=is_duplicate", "--skip_bad_rows", "--do_train", "--do_eval"]
        dev = pathlib.Path(folder, "dev.tsv")
        dev.write_text("".join((qqp / "dev.tsv").read_text().splitlines(True)[: DEV_ROWS + 1]))
        flags += [f"--train_file={qqp}/train.tsv", f"--dev_file={dev}", f"--seed={seed}"]
        flags += [f"--max_seq_length={TRAINED_LENGTH}", f"--train_batch_size={BATCH}", "--noreport"]
        flags += ["--learning_rate=1e-3", f"--num_train_epochs={EPOCHS}", f"--output_dir={out}"]
        flags += [f"--in_memory_mb={0 if place == DISK else 256}"]
        record = runner.run_record(["run_classifier.py", *flags], out)
    return {
        "steps": record["global_step"],
        "examples_per_second": record["examples_per_second"],
        "peak_memory_mb": record["peak_memory_mb"],
        "accuracy": record["eval"]["eval_accuracy"],
    }


def table_memory(rows_by_key: ledger.Rows) -> list[str]:
    """Returns Markdown lines: time, memory and batches of generated tables."""
    lines = [
        "| rows, table | | read, checked, tokenized | most memory; memory before reading "
        "| batches/s, files in the cache | not in the cache |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (place, count, seed), row in sorted(rows_by_key.items(), key=str):
        if seed is not None:
            continue
        cold = f"{row['cold_batches_per_second']:,.0f}" if place == DISK else ""
        lines.append(
            f"| {count:,}, {row['megabytes']:,.0f} MB | {place} | {row['seconds']:,.0f} s, "
            f"{count / row['seconds']:,.0f} rows/s | {row['most_mb']:,.0f} MB, "
            f"{row['before_mb']:,.0f} MB | {row['batches_per_second']:,.0f} | {cold} |"
        )
    return lines


def table_training(rows_by_key: ledger.Rows) -> list[str]:
    """Returns Markdown lines: training on QQP, medians with ranges over the seeds."""
    lines = ["| training rows | steps | examples/s | accuracy of the dev set |"]
    lines.append("| --- | --- | --- | --- |")
    for place in (MEMORY, DISK):
        rows = [row for (p, _, seed), row in rows_by_key.items() if p == place and seed is not None]
        if rows:
            rates = measuring.spread([row["examples_per_second"] for row in rows])
            scores = measuring.spread([100 * row["accuracy"] for row in rows])
            lines.append(f"| {place} | {rows[0]['steps']} | {rates} | {scores} |")
    return lines


def write_tables() -> None:
    """Rewrites the tables in docs/performance.md."""
    LEDGER.write_tables(table_memory, table_training)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        data_dir=(None, "Folder of GLUE, with QQP or a part of it."),
        rows=(2_000_000, "Of the larger generated table."),
    )
