"""Joins adapters of one base into one SavedModel.

    python -m adapter_bert_tf.serving out/*/adapter --output=served

A signature for each task takes its texts; the signature `tasks` takes a task's name with each row.
Two adapters of one task need other names: first=out/0/adapter second=out/1/adapter
"""

import argparse
import sys

from adapter_bert_tf.command.edge import attempted, program
from adapter_bert_tf.command.home import expanded


def main(arguments=None):
    """Runs the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("adapter_bert_tf.serving"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folders", nargs="+", type=expanded, metavar="[NAME=]DIR", help="an adapter directory"
    )
    parser.add_argument("--output", required=True, type=expanded, help="the SavedModel to write")
    parser.add_argument(
        "--base_model", type=expanded, help="the adapters' base (default: the installed one)"
    )
    parsed = parser.parse_args(arguments)
    return attempted(lambda: _join(parsed), vars(parsed))


def _join(parsed):
    from adapter_bert_tf.base import load_base
    from adapter_bert_tf.received import printable
    from adapter_bert_tf.serving.many import join
    from adapter_bert_tf.serving.place import signatures_of

    before = signatures_of(parsed.output)
    names = join(parsed.folders, load_base(parsed.base_model), parsed.output)
    print(f"{parsed.output}: {', '.join(names)}")
    if gone := sorted({*before} - {*signatures_of(parsed.output)}):
        print(f"What was there before is replaced; no longer in it: {printable(', '.join(gone))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
