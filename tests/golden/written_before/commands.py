"""Runs several command lines of one script in one process, in the folder it is started from.

    PYTHONPATH=CHECKOUT python commands.py run_squad '[["--do_eval", ...], ["--do_train", ...]]'

TensorFlow is then imported once. The exit status is that of the first command that fails.
"""

import importlib
import json
import sys

from absl import flags
from absl.testing import flagsaver


def run(script, lines):
    """Runs the command lines, lists of flags, of `run_classifier` or `run_squad`."""
    module = importlib.import_module(script)
    for line in lines:
        sys.argv = [f"{script}.py", *line]
        with flagsaver.flagsaver():
            flags.FLAGS.unparse_flags()
            for name in flags.FLAGS:
                flags.FLAGS[name].present = 0
            flags.FLAGS(sys.argv)
            module.main(None)


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]))
