"""Joins adapters of one base into one SavedModel.

    adapter-bert serve out/*/adapter --output=served

A signature for each task takes its texts; the signature `tasks` takes a task's name with each row.
Two adapters of one task need other names: first=out/0/adapter second=out/1/adapter
Adapters that were trained on top of others: --stack=out/german, or for each of them its own:
--stack=first=out/german --stack=second=out/french
"""

import argparse
from collections.abc import Sequence

from adapter_bert_tf.cli.error_handling import command_parser, run_guarded
from adapter_bert_tf.cli.importing import import_tensorflow
from adapter_bert_tf.config.parsing import expand_user


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    parser = command_parser("adapter_bert_tf.serving", __doc__)
    parser.add_argument(
        "folders",
        nargs="+",
        type=expand_user,
        metavar="[NAME=]DIR",
        help="an adapter's folder, or its run's",
    )
    parser.add_argument("--output", required=True, type=expand_user, help="the SavedModel to write")
    parser.add_argument(
        "--base_model", type=expand_user, help="the adapters' base (default: what they name)"
    )
    parser.add_argument(
        "--stack",
        action="append",
        default=[],
        type=expand_user,
        metavar="[NAME=]DIR",
        help="the adapter below those on top of one, or below NAME; may be repeated",
    )
    parsed = parser.parse_args(arguments)
    return run_guarded(lambda: _join(parsed), vars(parsed))


def _join(parsed: argparse.Namespace) -> int:
    from adapter_bert_tf.base import load_base
    from adapter_bert_tf.sanitize import printable
    from adapter_bert_tf.store.base_match import base_source
    from adapter_bert_tf.store.directory import parse_named_folder
    from adapter_bert_tf.store.files import read_adapter_config

    # Errors, before seconds of importing TensorFlow.
    configs = [read_adapter_config(parse_named_folder(folder)[1]) for folder in parsed.folders]
    import_tensorflow("adapter_bert_tf.serving.joined")
    from adapter_bert_tf.serving.joined import join
    from adapter_bert_tf.serving.saved_model_dir import SavedModelDir

    before = SavedModelDir(parsed.output).signatures()
    base = load_base(parsed.base_model or base_source(configs[0]))
    names = join(parsed.folders, base, parsed.output, _stack(parsed.stack))
    print(f"{parsed.output}: {', '.join(names)}")
    if removed := sorted({*before} - {*SavedModelDir(parsed.output).signatures()}):
        print(
            f"Replaced an earlier SavedModel. Removed signatures: {printable(', '.join(removed))}"
        )
    return 0


def _stack(values: Sequence[str]) -> str | dict[str, str] | None:
    """The folder of `--stack`, or a dict from names to folders. Raises `InputError`."""
    from adapter_bert_tf.errors import InputError
    from adapter_bert_tf.sanitize import preview
    from adapter_bert_tf.store.directory import parse_named_folder

    folders = dict(map(parse_named_folder, values))
    if len(folders) < len(values) or ("" in folders and len(folders) > 1):
        raise InputError(
            "Give --stack=FOLDER once, or --stack=NAME=FOLDER once for each name. "
            f"Received: {preview(values)}"
        )
    return folders.get("", folders) or None
