"""Memory and time of reading, tokenizing and packing plain text of any size, as `adapt` does.

    python -m benchmarks.text_memory --minutes=4                     # measures, and adds a row
    python -m benchmarks.text_memory --megabytes=10000 --minutes=60  # all 10 GB
    python -m benchmarks.text_memory --table                         # only the table

A thread generates lines of random words and writes them to a named pipe; there is no file of the
text. The reader of text files reads the pipe, and the word pieces are packed to sequences of 128 in
a file, as a run does. After each block the resident memory is read; a row has the most up to 20 MB
of text, between 20 and 200 MB, and so on, all in one process. Generating ends after `--minutes`.
"""

import functools
import itertools
import json
import os
import pathlib
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import ledger, measuring, runner

LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "text_memory",
    page=runner.ROOT / "docs" / "performance.md",
    key=lambda row: (row["limit_mb"], row["limit_minutes"]),
)
LENGTH, BLOCK = 128, 1_000_000  # Bytes that are generated at a time, about.
MARKS = (20, 200, 1_000, 10_000)  # MB.


def measure(base: str, marks: str, minutes: str) -> dict[str, Any]:
    """Packs generated text in this process.

    Args:
      base: folder of a base, whose vocabulary is used; empty for the default one.
      marks: JSON list of rising MB; the last one is the size of the text.
      minutes: after which the text ends at the latest.

    Returns:
      dict of `megabytes`, `seconds`, `pieces`, `sequences`, and `most_mb`: pairs of a mark that was
      reached, or the size, and the most resident memory since the mark before it, in MB.
    """
    import adapter_bert_tf as abt
    from adapter_bert_tf.base.vocabulary import read_vocabulary
    from adapter_bert_tf.data.plain_text.files import read_texts
    from adapter_bert_tf.data.plain_text.packed_file import cached_sequences
    from adapter_bert_tf.data.plain_text.packing import pack

    vocabulary = read_vocabulary(f"{base}/vocab.txt") if base else abt.load_base().vocabulary
    encoder = abt.TextEncoder(vocabulary, LENGTH)
    most: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        pipe, start = os.path.join(folder, "text"), time.perf_counter()
        os.mkfifo(pipe)
        stop = start + 60 * float(minutes)
        blocks = itertools.takewhile(lambda _: time.perf_counter() < stop, generate(vocabulary))

        def write() -> None:
            most.extend(_write(pipe, blocks, json.loads(marks)))

        writer = threading.Thread(target=write)
        writer.start()
        pack_all = functools.partial(pack, read_texts([pipe]), encoder)
        packed = cached_sequences(folder, {}, len(vocabulary), LENGTH, pack_all)
        writer.join()
        seconds = time.perf_counter() - start
    counts = {"sequences": packed.count, "pieces": packed.counts.pieces}
    return {"megabytes": most[-1][0], "seconds": seconds, **counts, "most_mb": most}


def generate(vocabulary: Any) -> Iterator[bytes]:
    """Yields blocks of whole lines of random whole words, without end; no two are equal."""
    import numpy as np

    rng = np.random.default_rng(0)
    words = [p.encode() for p in vocabulary.pieces if p[0] not in "[#"]
    chosen = np.array(words, object)
    while True:
        picked = rng.choice(chosen, BLOCK // 8)
        picked[19::20] += b"\n"
        yield b" ".join(picked.tolist()) + b"\n"


def _write(path: str, blocks: Iterator[bytes], marks: list[float]) -> Iterator[tuple[float, float]]:
    """Writes blocks until the last mark; yields (MB, most memory) at marks and at the end."""
    written, most = 0.0, 0.0
    with open(path, "wb") as file:
        for block in blocks:
            file.write(block)
            written, most = written + len(block) / 1e6, max(most, resident_mb())
            if written >= marks[0]:
                yield marks.pop(0), most
                most = 0.0
            if not marks:
                return
    yield round(written, 1), most


def resident_mb() -> float:
    """The resident memory of this process, in MB."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def run_missing(megabytes: int, minutes: int) -> None:
    """Measures this size once, and prints the row."""
    marks = [mark for mark in MARKS if mark < megabytes] + [megabytes]
    for limits in LEDGER.missing([(megabytes, minutes)]):
        arguments = ("", json.dumps(marks), str(minutes))
        row = dict(zip(("limit_mb", "limit_minutes"), limits, strict=True))
        row |= measuring.run_in_process("benchmarks.text_memory", *arguments)
        print(row, flush=True)
        LEDGER.add("rows", [row | measuring.describe_machine(measuring.PACKAGES)])


def text_memory(rows_by_key: ledger.Rows) -> list[str]:
    """Returns Markdown lines: the memory up to each mark, and rates."""
    lines = ["| text, MB | most memory, MB, up to | MB/s | word pieces/s |"]
    lines.append("| --- | --- | --- | --- |")
    for row in rows_by_key.values():
        memory = ", ".join(f"{mark:,.0f} MB: {most:,.0f}" for mark, most in row["most_mb"])
        rates = (row["megabytes"] / row["seconds"], row["pieces"] / row["seconds"])
        lines.append(f"| {row['megabytes']:,.0f} | {memory} | {rates[0]:.1f} | {rates[1]:,.0f} |")
    return lines


def write_tables() -> None:
    """Rewrites the table in docs/performance.md."""
    LEDGER.write_tables(text_memory)


if __name__ == "__main__" and not runner.run_worker(measure):
    runner.run_benchmark(
        __doc__,
        run_missing,
        write_tables,
        megabytes=(10_000, "Size of the text."),
        minutes=(4, "When the text ends at the latest."),
    )
