"""Answers the rows of a file, or one text, with a trained adapter.

    adapter-bert predict --adapter_dir=out/mrpc/adapter --predict_file=pairs.csv \\
        --output=answers.csv
    adapter-bert predict --adapter_dir=out/mrpc/adapter --text_a="He left." \\
        --text_b="He went away."

Files are .csv, .tsv or .jsonl, plain or .gz, of any size; a .parquet file can be read. The output
has all columns of the file, and those of the answers: `label` and `probability_...`, `score`,
`answer` and where it stands, or `entities`.

A tagger also takes files of words: one word a line, as in CoNLL-2003, or JSON lines with `tokens`.
The output has the file's lines with the predicted tag as one more column; with an output .jsonl
one object a sentence.
"""

import argparse
import json
from collections.abc import Sequence

from adapter_bert_tf.cli.error_handling import command_parser, run_guarded
from adapter_bert_tf.cli.importing import import_tensorflow
from adapter_bert_tf.config.parsing import expand_user

# Options of `Predictor.predict_file`.
OF_WORDS = ("word_column", "separator", "comments")
OF_TABLES = (
    *("text_a_column", "text_b_column", "delimiter", "header", "quoted", "encoding"),
    *("skip_bad_rows", "overwrite"),
)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_parser("adapter_bert_tf.predict", __doc__)
    add = parser.add_argument
    add(
        "--adapter_dir",
        required=True,
        type=expand_user,
        help="folder of a trained adapter or its run",
    )
    add("--predict_file", type=expand_user, help="the table to answer")
    add("--output", type=expand_user, help="the table to write")
    add("--text_a", help="one text to answer; of a question adapter the question")
    add("--text_b", help="the second text of a pair; the context of the question")
    add("--text_a_column", help="by name or by number from 0 (default: as it was trained)")
    add("--text_b_column", help="of pairs, and of contexts")
    add(
        "--base_model",
        type=expand_user,
        help="its base: a folder, a package, a name on a hub (default: the one it names; a "
        "folder must be given)",
    )
    add("--stack", type=expand_user, help="the adapter below it, of a language for example")
    add("--batch_size", type=int, default=32, help="the most rows of a batch (default: 32)")
    add_reading_flags(parser)
    add("--skip_bad_rows", action="store_true", help="rows without their texts get no answer")
    add("--word_column", help="of words: a number from 0, or a key (default: 0; tokens)")
    add("--separator", help=r"between columns of words; \t is a tab (default: blanks and tabs)")
    add("--comments", action="store_true", help="lines of words that begin with # are comments")
    add("--overwrite", action="store_true", help="replace a file at --output")
    parsed = parser.parse_args(arguments)
    if (parsed.predict_file is None) == (parsed.text_a is None):
        parser.error("give one of --predict_file and --text_a")
    if parsed.predict_file is not None and not parsed.output:
        parser.error("--predict_file needs --output, the file to write")
    one_text = parsed.text_a is not None
    unused = ("output", *OF_TABLES, *OF_WORDS) if one_text else ("text_b",)
    if given := [f"--{n}" for n in unused if getattr(parsed, n) != parser.get_default(n)]:
        mode = "--text_a" if one_text else "--predict_file"
        parser.error(f"{', '.join(given)} has no effect with {mode}. Leave it out.")
    return parsed


def add_reading_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that say how a table is read, where not as the adapter's own."""
    add = parser.add_argument
    add("--delimiter", help="of cells (default: as it was trained; a comma in .csv, else a tab)")
    switches = {"header": "the first row names the columns", "quoted": "cells may be quoted"}
    for name, meaning in switches.items():
        add(f"--{name}", action="store_true", default=None, help=f"{meaning} (default: as trained)")
        add(f"--no{name}", dest=name, action="store_false", default=None, help="the opposite")
    add("--encoding", help="of the table (default: as it was trained; utf-8)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    parsed = parse(arguments)
    run = _one if parsed.text_a is not None else _file
    return run_guarded(lambda: run(parsed), vars(parsed))


def _one(parsed: argparse.Namespace) -> int:
    from adapter_bert_tf.store.files import read_adapter_config

    read_adapter_config(parsed.adapter_dir)  # Errors, before seconds of importing TensorFlow.
    import_tensorflow("adapter_bert_tf.predict.predictor")
    from adapter_bert_tf.predict.predictor import Predictor

    predictor = Predictor(parsed.adapter_dir, base=parsed.base_model, stack=parsed.stack)
    answer = predictor(parsed.text_a, parsed.text_b)
    print(json.dumps(answer, ensure_ascii=False))
    return 0


def _file(parsed: argparse.Namespace) -> int:
    from adapter_bert_tf.predict.tables import check_places
    from adapter_bert_tf.predict.tagged_files import format_of_words
    from adapter_bert_tf.store.files import read_adapter_config

    options = {name: getattr(parsed, name) for name in (*OF_TABLES, *OF_WORDS)}
    paths = parsed.predict_file, parsed.output
    # Errors, before seconds of importing TensorFlow.
    of_words = format_of_words(read_adapter_config(parsed.adapter_dir), *paths, options)
    if of_words is None:
        check_places(*paths, parsed.overwrite)
    import_tensorflow("adapter_bert_tf.predict.predictor")
    from adapter_bert_tf.predict.predictor import Predictor

    predictor = Predictor(
        parsed.adapter_dir,
        base=parsed.base_model,
        batch_size=parsed.batch_size,
        stack=parsed.stack,
    )
    rows = predictor.predict_file(*paths, progress=True, **options)
    noun = "row" if of_words is None else "sentence"
    print(f"{rows:,} {noun if rows == 1 else f'{noun}s'}: {parsed.output}")
    return 0
