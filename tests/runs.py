"""Commands in this process, and data in MRPC's layout."""

import contextlib
import dataclasses
import io
import logging
import os
import pathlib
from typing import ClassVar
from unittest import mock

import numpy as np
import safetensors.numpy
from absl import flags
from absl import logging as absl_logging
from absl.testing import flagsaver

import run_classifier
from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.config.setting import Command
from tests import support

ROOT = pathlib.Path(run_classifier.__file__).parent
START_AT_ZERO = ("head/bias", "adapters/layer_1/feed_forward/up_bias")
MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"


def mrpc_row(label, *texts):
    return "\t".join([str(label), "1", "2", *texts])


def sentence(rng):
    return " ".join(rng.choice(support.WORDS[:20], rng.integers(2, 6)))


def write_mrpc(folder, rows=64):
    """A task in MRPC's layout that can be learned: label 1 where the second text has `not`."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", rows), ("dev", 16)):
        lines = [
            mrpc_row(i % 2, sentence(rng), sentence(rng) + (" not not" if i % 2 else " red"))
            for i in range(count)
        ]
        (folder / f"{name}.tsv").write_text("\n".join([MRPC_HEADER, *lines]) + "\n")
    lines = [f"{i}\t1\t2\t{sentence(rng)}\t{sentence(rng)}" for i in range(8)]
    (folder / "test.tsv").write_text(
        "\n".join(["index\t#1 ID\t#2 ID\t#1 String\t#2 String", *lines]) + "\n"
    )
    return folder


def base_flags(folder):
    """adapter-bert's three flags for a base in Google's format."""
    return [
        f"--vocab_file={folder}/vocab.txt",
        f"--bert_config_file={folder}/bert_config.json",
        f"--init_checkpoint={folder}/bert_model.ckpt",
    ]


@contextlib.contextmanager
def inside(folder):
    """A context in which paths count from `folder`."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def command(*arguments, folder=ROOT, main=run_classifier.main):
    """Runs a command in this process, in `folder`; returns the error message, or None."""
    with flagsaver.flagsaver():
        flags.FLAGS.unparse_flags()
        for name in flags.FLAGS:
            flags.FLAGS[name].present = 0
        # Nearly all tests look at other things: a page takes half a second. `--report` draws it.
        flags.FLAGS(["run_classifier.py", "--noreport", *map(str, arguments)])
        return _message(lambda: main(None), folder)


@dataclasses.dataclass(frozen=True)
class FinishedRun:
    """A run that has ended.

    Args:
      data: the folder of its data.
      base: the folder of its base.
      out: its output folder.
    """

    flags: ClassVar = ("--num_train_epochs=1", "--do_eval", "--do_predict")
    data: pathlib.Path
    base: str
    out: pathlib.Path


class Lines(logging.Handler):
    """Keeps the messages that are logged."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def squad(*arguments):
    """Runs `run_squad.py` in this process; (exit status, printed text, messages and warnings)."""
    return run_command(Command.SQUAD, *arguments)


def tagger(*arguments):
    """Runs `run_tagger.py` in this process, without a report; as `squad`."""
    return run_command(Command.TAGGER, "--noreport", *arguments)


def run_command(of, *arguments):
    """Runs a command in this process; (exit status, printed text, messages and warnings).

    Its flags are in a registry of their own: some have the names of `run_classifier.py`'s.
    """
    values = flags.FlagValues()
    for flag in flags.FLAGS.flags_by_module_dict()["absl.logging"]:
        values[flag.name] = flag
    define_flags(of, values)
    values([f"{of.value}.py", *map(str, arguments)])
    log, printed = Lines(), io.StringIO()
    logger = absl_logging.get_absl_logger()
    logger.addHandler(log)
    try:
        with mock.patch.object(flags, "FLAGS", values), contextlib.redirect_stdout(printed):
            error = _message(lambda: run_job(of.job))
    finally:
        logger.removeHandler(log)
    return int(error is not None), printed.getvalue(), "\n".join([*log.lines, error or ""])


def _message(run, folder=ROOT):
    """The error message with which a command ends, or None."""
    try:
        with inside(folder):
            run()
    except SystemExit as stop:
        return str(stop.code)
    return None


def try_to_train(mrpc, base, out, *more):
    """Trains on a folder in MRPC's layout; returns the error message, or None."""
    return command(
        "--task_name=mrpc",
        "--do_train",
        f"--data_dir={mrpc}",
        *base_flags(base),
        f"--output_dir={out}",
        "--max_seq_length=16",
        "--train_batch_size=8",
        *more,
    )


def train(mrpc, base, out, *more):
    """Trains, and sees that something moved; returns the output folder."""
    failed = try_to_train(mrpc, base, out, *more)
    assert failed is None, failed
    path = pathlib.Path(out, "adapter", "adapter.safetensors")
    weights = safetensors.numpy.load_file(path) if path.exists() else {}
    for name, value in weights.items():
        assert value.any() or name not in START_AT_ZERO, name
    return out
