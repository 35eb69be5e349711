"""Scores files of any number and size with trained adapters, on Apache Beam.

    adapter-bert score --adapter_dir=out/mrpc/adapter --input='logs/part-*.csv' --output=scored
    adapter-bert score --adapter_dir=A,B --adapter_column=task --input=rows --output=scored \\
        --workers=8 --format=.parquet
    adapter-bert score --adapter_dir=gs://bucket/adapter --input=gs://bucket/rows \\
        --output=gs://bucket/scored --runner=DataflowRunner --project=P --region=R ...

    adapter-bert score --adapter_dir=gs://bucket/adapter --input=bigquery://P.rows.mail \\
        --output=bigquery://P.rows.scored --temp_location=gs://bucket/tmp

Files are .csv, .tsv, .jsonl and .txt, plain or .gz, and .parquet; a folder stands for all in it.
Each part of a file becomes one shard with all columns, those of the answers, and `source_file` and
`source_row`. Rows that cannot be scored go to `_bad_rows` in the output, with the reason. The same
command with --resume goes on after a failure, and scores files that were added.

Flags that are not listed here are those of Beam and the runner.
"""

import argparse
from collections.abc import Sequence
from typing import Any

from adapter_bert_tf.cli.error_handling import command_parser, run_guarded
from adapter_bert_tf.cli.predict import add_reading_flags
from adapter_bert_tf.config.parsing import expand_user
from adapter_bert_tf.errors import InputError

READING = ("delimiter", "header", "quoted", "encoding")


def parse(arguments: Sequence[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
    """Parses the command line; returns the rest, too, which is for Beam."""
    parser = command_parser("adapter_bert_tf.score", __doc__)
    add = parser.add_argument
    add(
        "--adapter_dir",
        required=True,
        help="folder of an adapter or its run; of several NAME=DIR,NAME=DIR",
    )
    add("--input", required=True, help="files, folders, patterns and tables, with commas between")
    add("--output", required=True, type=expand_user, help="the folder, or the table, to write")
    add("--temp_location", help="gs:// folder for the rows of tables, and for Beam")
    add("--runner", default="local", help="local (default), or a runner of Beam: FlinkRunner, ...")
    add("--workers", type=int, default=1, help="processes of the runner local (default: 1)")
    add(
        "--threads",
        type=int,
        help="of a worker process (default: its share of the cores; of other runners, all)",
    )
    add(
        "--format",
        help="of the output: .csv, .tsv, .jsonl, .parquet, .csv.gz, ... (default: as read)",
    )
    add("--adapter_column", help="of several adapters: the column that names the adapter of a row")
    add("--text_a_column", help="by name or by number from 0 (default: as it was trained)")
    add("--text_b_column", help="of pairs, and of contexts")
    add("--base_model", type=expand_user, help="its base (default: what the adapter names)")
    add("--stack", type=expand_user, help="the adapter below it, of a language for example")
    add("--batch_size", type=int, default=32, help="the most rows of a batch (default: 32)")
    add("--part_rows", type=int, default=16_384, help="rows of a shard (default: 16384)")
    add_reading_flags(parser)
    add("--max_bad_rows", type=int, help="end the run if more rows are bad (default: no limit)")
    add("--resume", action="store_true", help="keep the parts that earlier runs have written")
    add("--overwrite", action="store_true", help="replace another job in the output folder")
    parser.allow_abbrev = False
    return parser.parse_known_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status, 1 also where a file was damaged."""
    parsed, rest = parse(arguments)
    return run_guarded(lambda: _score(parsed, rest), vars(parsed))


def _score(parsed: argparse.Namespace, rest: Sequence[str]) -> int:
    from adapter_bert_tf.beam.bigquery import Tables
    from adapter_bert_tf.beam.job import score
    from adapter_bert_tf.store.directory import parse_named_folders
    from adapter_bert_tf.store.files import read_adapter_config

    _require_flags(rest)
    if parsed.temp_location:
        rest = [*rest, f"--temp_location={parsed.temp_location}"]
    named = parse_named_folders(parsed.adapter_dir)
    adapters = [(name, expand_user(path)) for name, path in named]
    tables = Tables(_paths(parsed.input), parsed.output, parsed.temp_location, parsed.format)
    if tables.names:  # Errors, before minutes of an export.
        for _, path in adapters:
            read_adapter_config(path)
    summary = score(
        adapters,
        tables.export(parsed.overwrite),
        tables.output,
        runner=parsed.runner,
        workers=parsed.workers,
        ending=tables.ending,
        adapter_column=parsed.adapter_column,
        text_a_column=parsed.text_a_column,
        text_b_column=parsed.text_b_column,
        reading={name: getattr(parsed, name) for name in READING},
        base=parsed.base_model,
        stack=parsed.stack,
        part_rows=parsed.part_rows,
        batch_size=parsed.batch_size,
        threads=parsed.threads,
        max_bad_rows=parsed.max_bad_rows,
        resume=parsed.resume,
        overwrite=parsed.overwrite,
        beam_options=rest,
    )
    tables.load(summary)
    print(_summary_line(summary, parsed.output))
    if summary["bad_rows"] and tables.output != parsed.output:
        print(f"Bad rows: {tables.output}/_bad_rows")
    for file in summary["damaged_files"]:
        print(f"Not whole: {file['file']}: {file['reason']}")
    return 1 if summary["damaged_files"] else 0


def _require_flags(words: Sequence[str]) -> None:
    """Raises `InputError` for a word that is neither a flag nor its value: Beam would ignore it."""
    for before, word in zip(["=", *words], words, strict=False):
        if not word.startswith("-") and ("=" in before or not before.startswith("-")):
            raise InputError(
                f"{word!r} belongs to no flag. A pattern needs quotes, or the shell replaces it: "
                "--input='part-*.csv'."
            )


def _paths(value: str) -> list[str]:
    return [expand_user(path.strip()) for path in value.split(",") if path.strip()]


def _summary_line(summary: dict[str, Any], output: str) -> str:
    bad = f", {summary['bad_rows']:,} of them bad," if summary["bad_rows"] else ""
    cut = f", {summary['cut_rows']:,} longer than read" if summary["cut_rows"] else ""
    labels = sorted(summary["labels"].items(), key=lambda pair: -pair[1])[:5]
    counts = "".join(f"  {label}: {count:,}" for label, count in labels)
    return f"{summary['rows']:,} rows{bad} in {summary['parts']:,} parts{cut}: {output}{counts}"
