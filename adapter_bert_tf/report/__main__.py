"""`analysis report`: draws the page of an output folder again, from its files."""

import argparse
import sys
from collections.abc import Sequence

from adapter_bert_tf.command.edge import attempted
from adapter_bert_tf.report.page import write


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m adapter_bert_tf.analysis report")
    parser.add_argument("--output_dir", required=True, help="of a run, a sweep or an analysis")
    parsed = parser.parse_args(arguments)

    def run() -> int:
        print(f"Report: {write(parsed.output_dir)}")
        return 0

    return attempted(run, vars(parsed))


if __name__ == "__main__":
    sys.exit(main())
