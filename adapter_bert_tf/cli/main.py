"""Adapter tuning for BERT at the terminal."""

import importlib
import sys
from collections.abc import Sequence

from absl import app

from adapter_bert_tf.cli import help_page
from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.config.setting import Command

JOBS = {command.word: command for command in Command}
# With their descriptions; by name, because only a command that runs may load TensorFlow.
MODULES = {
    "predict": ("adapter_bert_tf.cli.predict", "answer the rows of a file, or one text"),
    "score": ("adapter_bert_tf.cli.score", "answer files of any number, on Apache Beam"),
    "store": (
        "adapter_bert_tf.cli.store",
        "list, show, check, average, import and export adapters",
    ),
    "serve": ("adapter_bert_tf.cli.serve", "join adapters into one SavedModel"),
    "analyze": (
        "adapter_bert_tf.cli.analyze",
        "what adapters do and where they differ; the report of a run again",
    ),
    "doctor": (
        "adapter_bert_tf.doctor.command",
        "versions, devices, and what is wrong with them",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command by its name; returns the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    name, rest = (words[0] if words else ""), words[1:]
    if name in JOBS:
        _run(JOBS[name], rest)
    if name in MODULES:
        status: int = importlib.import_module(MODULES[name][0]).main(rest)
        return status
    if name in ("--help", "-h", "help"):
        help_page.print_page(_page())
        return 0
    if name == "--version":
        print(importlib.import_module("adapter_bert_tf").__version__)
        return 0
    names = ", ".join([*JOBS, *MODULES])
    print(f"error: give one of the commands {names}. Received: {name!r}", file=sys.stderr)
    return 2


def _run(command: Command, words: Sequence[str]) -> None:
    """Runs a job with the flags of its script; ends the process."""
    sys.argv[0] = f"adapter-bert {command.word}"
    define_flags(command)
    about = f"{_about(command)}\n\n{sys.argv[0]} --output_dir=DIR [flags]\n"
    help_page.print_help_if_asked(words, sys.argv[0], about)
    app.run(lambda given: run_job(command.job, given), [sys.argv[0], *words])


def _about(command: Command) -> str:
    return f"{command.about} ({command.value}.py)"


def _page() -> str:
    """The list of all commands."""
    rows = {word: _about(command) for word, command in JOBS.items()}
    rows |= {word: about for word, (_, about) in MODULES.items()}
    lines = [f"{word:<12}{about}" for word, about in rows.items()]
    return "\n".join([__doc__ or "", "", "adapter-bert COMMAND --help", "", *lines, ""])
