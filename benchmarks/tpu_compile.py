"""The tables of docs/tpu.md: all steps of gcs_configs/, compiled for TPUs without a TPU.

    python -m benchmarks.tpu_compile              # compiles what is missing; hours
    python -m benchmarks.tpu_compile --table      # only rewrites docs/tpu.md

Every compile's result is a JSON line in benchmarks/results/tpu/compiles.jsonl. It needs the
environment of `make parity`.
"""

import argparse
import collections
import dataclasses
import json
import math
import pathlib
import subprocess
import sys

from benchmarks import ledger
from benchmarks.step_models import Case
from benchmarks.tpu_cases import (
    LANGUAGE,
    METHOD_PRESETS,
    NOT_THE_SHAPE,
    STACK,
    by_shape,
    language_cases,
    plan,
    preset_cases,
    searches,
)
from benchmarks.tpu_hlo import CHIPS

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ledger.Ledger(
    folder=ledger.RESULTS / "tpu",
    page=ROOT / "docs" / "tpu.md",
    key=lambda row: Case(**row["case"]),
)
FIRST_GUESS = 64


def compile_missing(cases):
    """Compiles missing cases, each in its own process; returns all results.

    Raises:
      RuntimeError: when the process fails, which says nothing about the step.
    """
    groups = collections.defaultdict(list)
    for case in LEDGER.missing(cases):
        groups[dataclasses.replace(case, chip="")].append(case)
    for group in groups.values():
        print("*****", *(case.chip for case in group), group[0], flush=True)
        process = subprocess.run(
            [sys.executable, "-m", "benchmarks.tpu_hlo", json.dumps(list(map(vars, group)))],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        rows = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
        LEDGER.add("compiles", rows)
        if process.returncode:
            raise RuntimeError(process.stderr[-4000:])
    return LEDGER.rows()


def largest(case, compiled):
    """Returns the largest power of two that compiles as a batch; None if unknown so far.

    Args:
      case: where to search; its batch does not matter.
      compiled: function of a batch: whether it compiles, None if that is not known.
    """
    batch = guess(case)
    while compiled(batch):
        batch *= 2
    if compiled(batch) is None:
        return None
    while batch > 1:
        batch //= 2
        if compiled(batch) is not False:
            return batch if compiled(batch) else None
    return 0


def guess(case):
    """Estimates the largest batch from the memory of one example, as a power of two."""
    row = LEDGER.rows().get(case)
    if not row or not row["compiles"]:
        return FIRST_GUESS
    example = row["memory"]["temp"] / case.batch
    free = CHIPS[case.chip].gib * 2**30 - row["memory"]["argument"]
    return 2 ** max(0, round(math.log2(free / max(example, 1))))


def known(rows, case):
    """Returns a function from a batch size to whether it compiles; None without a result."""

    def compiled(batch):
        row = rows.get(dataclasses.replace(case, batch=batch))
        return row and row["compiles"]

    return compiled


def compiling(case):
    """Returns the same, but compiles missing cases."""

    def compiled(batch):
        wanted = dataclasses.replace(case, batch=batch)
        return compile_missing([wanted])[wanted]["compiles"]

    return compiled


def shape_title(shape):
    """Formats a shape as `BERT-base, 2 classes, size 64, 4 examples of 128 a replica`."""
    head = {"classes": f"{shape.outputs} classes", "score": "a score", "span": "SQuAD"}[shape.head]
    return (
        f"BERT-{shape.base}, {head}, size {shape.adapter_size}, {shape.batch} examples of "
        f"{shape.length} a replica"
    )


def steps(rows):
    """Returns Markdown lines: for each shape its configurations and a table of the results."""
    lines = []
    for shape, configs in by_shape().items():
        lines += [
            "",
            f"### {shape_title(shape)}",
            "",
            ", ".join(f"`{name}`" for name in configs),
            "",
            "| chip | precision | step | arguments | temporaries | of memory | operations |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        cases = [case for case in plan() if dataclasses.replace(case, **NOT_THE_SHAPE) == shape]
        order = sorted(cases, key=lambda c: (list(CHIPS).index(c.chip), c.precision, c.step))
        lines += [
            f"| {case.chip} | {case.precision} | {case.step} | {cells(rows.get(case))} |"
            for case in order
        ]
    return lines


def cells(row):
    """Formats cells of a result: MiB of arguments and temporaries, proportion, operations."""
    if row is None:
        return "not tried | | |"
    if not row["compiles"]:
        return f"does not compile: {row['error'].splitlines()[0][:150]} | | |"
    memory = row["memory"]
    arguments, temporaries = memory["argument"] / 2**20, memory["temp"] / 2**20
    share = (arguments + temporaries) / 2**10 / CHIPS[row["case"]["chip"]].gib
    return f"{arguments:,.0f} MiB | {temporaries:,.0f} MiB | {share:.1%} | {row['flops']:.2e}"


def presets(rows):
    """Returns Markdown lines: the steps of `METHOD_PRESETS`."""
    cases = sorted(preset_cases(), key=lambda case: METHOD_PRESETS.index(case.adapter))
    return named_steps(rows, "preset", {case: f"`{case.adapter}`" for case in cases})


def languages(rows):
    """Returns Markdown lines: the steps of `language_cases`."""
    names = {
        LANGUAGE: f"masked words, `{LANGUAGE}`",
        STACK: f"2 classes, `pfeiffer` on `{LANGUAGE}`",
    }
    return named_steps(rows, "model", {case: names[case.adapter] for case in language_cases()})


def named_steps(rows, title, names):
    """Returns Markdown lines: a row for each case with a result, by its name."""
    lines = [
        f"| {title} | step | arguments | temporaries | of memory | operations |",
        "| --- |" + " --- |" * 5,
    ]
    return lines + [
        f"| {name} | {case.step} | {cells(rows.get(case))} |"
        for case, name in names.items()
        if case in rows
    ]


def batches(rows):
    """Returns Markdown lines: the largest batches."""
    lines = [
        "| base | head | chip | precision | largest batch | temporaries | twice as many |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for case in sorted(searches(), key=lambda c: (c.base, c.head, c.chip, c.precision)):
        best = largest(case, known(rows, case))
        if best:
            row = rows[dataclasses.replace(case, batch=best)]
            error = rows[dataclasses.replace(case, batch=2 * best)]["error"].splitlines()[0]
            refused = error.rpartition("total memory required for ")[2][:150]
            lines.append(
                f"| {case.base} | {case.head} {case.length} | {case.chip} | "
                f"{case.precision} | {best} | {row['memory']['temp'] / 2**20:,.0f} MiB | "
                f"{refused} |"
            )
    return lines


def write_tables():
    """Rewrites the tables of docs/tpu.md."""
    LEDGER.write_tables(batches, presets, languages, steps)


def main():
    """Runs the missing cases and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="Only write docs/tpu.md.")
    if not parser.parse_args().table:
        compile_missing([*preset_cases(), *language_cases(), *plan()])
        for case in searches():
            largest(case, compiling(case))
    write_tables()


if __name__ == "__main__":
    main()
