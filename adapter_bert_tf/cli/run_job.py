"""From a command line to an exit code: config file, signals, one message for each error."""

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from absl import flags, logging

from adapter_bert_tf.cli.error_handling import before_tensorflow, error_report, require_utf8
from adapter_bert_tf.config import checks
from adapter_bert_tf.config.config_file import apply_config_file
from adapter_bert_tf.config.ineffective_flags import warn_of_ineffective_flags
from adapter_bert_tf.config.messages import spell_for_command
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.errors import InputError, Interrupted, WorkerLost


def run_job(module: str, words: Sequence[str] | None = None) -> None:
    """Runs `module.run(FLAGS)`; what the user can mend becomes one message and exit status 1.

    Args:
      module: by name, because only what runs may load TensorFlow.
      words: the command line without its flags, the script's name first.
    """
    _prepare_process()
    try:
        require_utf8([*sys.argv, os.getcwd()])
        checks.check_words((words or [])[1:])
        apply_config_file(flags.FLAGS)
        _check(RunFlags.of(flags.FLAGS))
        importlib.import_module(module).run(flags.FLAGS)
    except (InputError, WorkerLost) as error:
        sys.exit(f"error: {spell_for_command(error)}")
    except Interrupted as stop:
        _stop(f"\n{stop}", stop.exit_status)
    except KeyboardInterrupt:
        _stop(
            "\nInterrupted. The same command goes on from the last checkpoint, if there is one.",
            128 + signal.SIGINT,
        )
    except Exception as error:  # Of a library, the machine, or ours: nobody is to read a traceback.
        sys.exit(f"error: {error_report(error, flags.FLAGS.output_dir)}")


def _check(given: RunFlags) -> None:
    checks.check(given)
    warn_of_ineffective_flags(given)


def _prepare_process() -> None:
    before_tensorflow()
    if not flags.FLAGS["verbosity"].present:
        logging.set_verbosity(logging.WARNING)
    # What holds a lock or a temporary folder is to let go of it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _stop(message: str, status: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(status)
