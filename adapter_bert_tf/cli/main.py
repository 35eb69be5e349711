"""Adapter tuning for BERT at the terminal.

adapter-bert COMMAND --help

classify    train, evaluate and apply an adapter for classes or scores (run_classifier.py)
squad       the same for answers to questions (run_squad.py)
predict     answer the rows of a file, or one text
store       list, show, check, average, import and export adapters
serve       join adapters into one SavedModel
analyze     what adapters do and where they differ; the report of a run again
doctor      versions, devices, and what is wrong with them
"""

import importlib
import sys
from collections.abc import Sequence

from absl import app

from adapter_bert_tf.cli import help_page
from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.config.setting import Command

JOBS = {
    "classify": (Command.CLASSIFIER, "adapter_bert_tf.jobs.classification"),
    "squad": (Command.SQUAD, "adapter_bert_tf.jobs.questions"),
}
# By name: only a command that runs may load TensorFlow.
MODULES = {
    "predict": "adapter_bert_tf.cli.predict",
    "store": "adapter_bert_tf.cli.store",
    "serve": "adapter_bert_tf.cli.serve",
    "analyze": "adapter_bert_tf.cli.analyze",
    "doctor": "adapter_bert_tf.doctor.command",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command by its name; returns the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    name, rest = (words[0] if words else ""), words[1:]
    if name in JOBS:
        _run(name, rest)
    if name in MODULES:
        status: int = importlib.import_module(MODULES[name]).main(rest)
        return status
    if name in ("--help", "-h", "help"):
        help_page.print_page(__doc__ or "")
        return 0
    if name == "--version":
        print(importlib.import_module("adapter_bert_tf").__version__)
        return 0
    names = ", ".join([*JOBS, *MODULES])
    print(f"error: give one of the commands {names}. Received: {name!r}", file=sys.stderr)
    return 2


def _run(name: str, words: Sequence[str]) -> None:
    """Runs a job with the flags of its script; ends the process."""
    command, module = JOBS[name]
    sys.argv[0] = f"adapter-bert {name}"
    define_flags(command)
    help_page.print_help_if_asked(words, sys.argv[0], _about(name))
    app.run(lambda given: run_job(module, given), [sys.argv[0], *words])


def _about(name: str) -> str:
    line = next(line for line in (__doc__ or "").splitlines() if line.strip().startswith(name))
    return f"{line.split(None, 1)[1]}\n\nadapter-bert {name} --output_dir=DIR [flags]\n"
