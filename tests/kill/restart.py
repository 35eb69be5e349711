"""In a process of its own: starts a command again after each of many kills, and says what it finds.

    python -m tests.kill.restart PLAN.json

The plan has `script`, `flags`, `root`, `whole` (what an uninterrupted run leaves) and `points`, a
dict from a title to a folder that a kill left. One line is printed for each of these.
"""

import contextlib
import importlib
import json
import pathlib
import shutil
import sys
import time

import tf_keras
from absl import flags
from absl.testing import flagsaver

from tests.kill.same import differences

FAILED, SAME = "FAILED", "same"


def restart(script, arguments):
    """Runs a command in this process; the message with which it ends, or None."""
    module = importlib.import_module(script)
    sys.argv = [f"{script}.py", *arguments]
    with flagsaver.flagsaver():
        flags.FLAGS.unparse_flags()
        for name in flags.FLAGS:
            flags.FLAGS[name].present = 0
        flags.FLAGS(sys.argv)
        try:
            module.main(None)
        except SystemExit as stop:
            return str(stop.code)
        finally:
            tf_keras.backend.clear_session()
    return None


def check(plan, left):
    """Lines that say what is wrong after a restart from a folder that a kill left."""
    shutil.rmtree(plan["root"], ignore_errors=True)
    shutil.copytree(left, plan["root"], symlinks=True)
    with open(plan["log"], "a", encoding="utf-8") as log, contextlib.redirect_stdout(log):
        message = restart(plan["script"], plan["flags"])
    return [message] if message else differences(plan["whole"], plan["root"])


def main():
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for point, left in plan["points"].items():
        start = time.monotonic()
        wrong = check(plan, left)
        seconds = time.monotonic() - start
        title = f"{FAILED if wrong else SAME} {point} ({seconds:.1f} s)"
        print(title, *wrong, sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
