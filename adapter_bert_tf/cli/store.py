"""Adapter directories at the terminal.

adapter-bert store list out            # every adapter below a folder
adapter-bert store show out/mrpc/adapter
adapter-bert store verify out/*/adapter
adapter-bert store average A B --output=DIR          # mean of the weights
adapter-bert store average A B --method=ties --density=0.2 --output=DIR   # or sum, dare
adapter-bert store generate out/five/adapter --task=mrpc --output=out/mrpc
adapter-bert store import FOLDER --output=DIR        # AdapterHub, PEFT, adapter-bert
adapter-bert store export DIR --output=FOLDER        # AdapterHub; --format=peft
adapter-bert store export DIR --format=base --output=FOLDER   # a base that full tuning trained
adapter-bert store export DIR --format=onnx --output=FOLDER   # or litert
adapter-bert store push DIR OWNER/NAME               # the Hugging Face Hub
adapter-bert store pull OWNER/NAME --output=DIR
"""

import argparse
from collections.abc import Sequence

from adapter_bert_tf.cli.error_handling import command_parser, run_guarded
from adapter_bert_tf.config.parsing import expand_user
from adapter_bert_tf.store.combining import arithmetic


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_parser("adapter_bert_tf.store", __doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, help: str, several: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help)
        sub.add_argument("folders", nargs="+" if several else 1, metavar="DIR")
        return sub

    command("list", "one line for each adapter in or below the folders")
    command("show", "the card, and the weights by group")
    verify = command("verify", "reads everything; exit status 1 if one is refused")
    average = command("average", "one adapter from the weights of adapters of one shape")
    _add_options_of_averages(average)
    generated = command("generate", "an ordinary adapter of one of several tasks", False)
    imported = command(
        "import", "reads files of AdapterHub or PEFT, or adapter-bert's checkpoint", False
    )
    exported = command("export", "writes it for another library or runtime", False)
    exported.add_argument(
        "--format",
        default="adapterhub",
        choices=("adapterhub", "peft", "base", "onnx", "litert"),
        help="AdapterHub's files (default), PEFT's, a base that full tuning trained, or the model "
        "of one task for a runtime",
    )
    pushed = command("push", "uploads it to a repository of the Hugging Face Hub", False)
    pushed.add_argument("name", metavar="OWNER/NAME")
    pushed.add_argument("--private", action="store_true", help="of a repository that is made")
    pulled = commands.add_parser("pull", help="downloads one from the Hugging Face Hub")
    pulled.add_argument("name", metavar="OWNER/NAME[@REVISION]")
    for sub in (average, generated, imported, exported, pulled):
        sub.add_argument("--output", required=True, type=expand_user, help="the folder to write")
    for sub in (verify, imported, exported):
        sub.add_argument(
            "--base_model",
            type=expand_user,
            help="the adapter's base (default: the one it names; a folder must be given)",
        )
    for sub in (average, generated, imported):
        sub.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    generated.add_argument("--task", required=True, help="one of those trained together")
    imported.add_argument("--task", help="name of the task (default: AdapterHub's of the adapter)")
    imported.add_argument(
        "--labels", default="", help="in order, with commas between, where the files name none"
    )
    imported.add_argument("--texts", type=int, default=1, choices=(1, 2), help="2 for pairs")
    imported.add_argument(
        "--max_seq_length", type=int, help="in word pieces (default: 128, or what the base reads)"
    )
    return parser.parse_args(arguments)


def _add_options_of_averages(average: argparse.ArgumentParser) -> None:
    average.add_argument(
        "--method",
        default="mean",
        choices=tuple(arithmetic.METHODS),
        help="mean (default), sum (task arithmetic; the ranks of LoRAs add up), ties or dare",
    )
    average.add_argument(
        "--shares",
        type=_numbers,
        default=(),
        help="how much each counts, separated by commas; only mean normalizes them (default: all "
        "alike, for ties 1 each, for sum and dare 1 / count)",
    )
    average.add_argument(
        "--density", type=float, default=0.5, help="share of the values that ties and dare keep"
    )
    average.add_argument("--seed", type=int, default=0, help="of the values that dare keeps")


def _numbers(text: str) -> tuple[float, ...]:
    """Numbers separated by commas; `argparse` reports a `ValueError`."""
    return tuple(map(float, text.split(",")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    parsed = parse(arguments)
    return run_guarded(lambda: _run(parsed), vars(parsed))


def _run(parsed: argparse.Namespace) -> int:
    from adapter_bert_tf.cli import store_commands as commands

    status: int | None = getattr(commands, f"{parsed.command}_adapters")(parsed)
    return status or 0
