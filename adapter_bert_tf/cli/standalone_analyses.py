"""Analyses that read no data of a task: their command lines, known without loading TensorFlow."""

import argparse
import importlib
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from adapter_bert_tf.cli.error_handling import program_name, run_guarded
from adapter_bert_tf.config.user_paths import expand_user


class Alone(NamedTuple):
    """An analysis with flags of its own.

    Args:
      module: whose `run(parsed, command)` does it.
      arguments: pairs of a name and what argparse is told of it.
    """

    module: str
    arguments: tuple[tuple[str, dict[str, Any]], ...]


PATH = {"required": True, "type": expand_user}
OUTPUT = ("--output_dir", {**PATH, "help": "for the table and the pictures"})
ALONE = {
    "fusion_map": Alone(
        "adapter_bert_tf.analysis.composition.heat_map",
        (("tables", {"nargs": "+", "metavar": "CSV", "help": "of `analysis fusion`"}), OUTPUT),
    ),
    "size_map": Alone(
        "adapter_bert_tf.analysis.sweeps.size_map",
        (
            ("tables", {"nargs": "+", "metavar": "FILE", "help": "size.csv, or a ledger .jsonl"}),
            ("--tasks", {"help": "only these, with commas between"}),
            OUTPUT,
        ),
    ),
    "embeddings": Alone(
        "adapter_bert_tf.analysis.composition.embeddings",
        (("--adapter_dir", {**PATH, "help": "of a HyperFormer, as a whole"}), OUTPUT),
    ),
    "report": Alone(
        "adapter_bert_tf.report.page",
        (("--output_dir", {**PATH, "help": "of a run, a sweep or an analysis"}),),
    ),
}


def main(name: str, arguments: Sequence[str]) -> int:
    """Runs an analysis of `ALONE`; returns the exit status."""
    module, rows = ALONE[name]
    called = f"{program_name('adapter_bert_tf.analysis')} {name}"
    parser = argparse.ArgumentParser(prog=called)
    for argument, told in rows:
        parser.add_argument(argument, **told)
    parsed = parser.parse_args(arguments)
    command = shlex.join([*called.split(), *arguments])

    def run() -> int:
        importlib.import_module(module).run(parsed, command)
        return 0

    return run_guarded(run, vars(parsed))
