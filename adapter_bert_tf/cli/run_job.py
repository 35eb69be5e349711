"""From a command line to an exit code: config file, signals, one message for each error."""

import importlib
import os
import signal
import sys
from collections.abc import Collection, Sequence
from typing import NoReturn

from absl import flags, logging

from adapter_bert_tf.cli.absl_flags import config_of
from adapter_bert_tf.cli.config_file import apply_config_file
from adapter_bert_tf.cli.error_handling import before_tensorflow, error_report, require_utf8
from adapter_bert_tf.cli.importing import OPTIONAL, import_tensorflow
from adapter_bert_tf.config import checks
from adapter_bert_tf.config.ineffective_flags import warn_of_ineffective_flags
from adapter_bert_tf.config.messages import spell_for_command
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import load
from adapter_bert_tf.errors import InputError, Interrupted, WorkerLost
from adapter_bert_tf.sanitize import preview


def run_job(
    module: str, words: Sequence[str] | None = None, options: Collection[str] | None = None
) -> None:
    """Runs `module.run(config)`; an input error is one message and exit status 1.

    Args:
      module: its name, because only a job that runs may load TensorFlow.
      words: the command line without its flags; the script's name first.
      options: names of an analysis' further flags; a dict of their values is the second argument
        of `run`. None: `run` has one argument.
    """
    _prepare_process()
    parsed = flags.FLAGS
    try:
        require_utf8([*sys.argv, os.getcwd()])
        _require_flags((words or [])[1:])
        apply_config_file(parsed)
        config = _with_adapter_defaults(config_of(parsed), options)
        checks.check(config)
        warn_of_ineffective_flags(config)
        _check_found(config, options)
        hidden = () if config.device.strategy == "tpu" else OPTIONAL
        import_tensorflow(module, hidden=hidden, deterministic=config.device.deterministic)
        run = importlib.import_module(module).run
        if options is None:
            run(config)
        else:
            run(config, {name: parsed[name].value for name in options})
    except (InputError, WorkerLost) as error:
        sys.exit(f"error: {spell_for_command(error)}")
    except Interrupted as stop:
        _stop(f"\n{stop}", stop.exit_status)
    except KeyboardInterrupt:
        _stop(
            "\nInterrupted. The same command continues from the last checkpoint, if there is one.",
            128 + signal.SIGINT,
        )
    except Exception as error:  # Users see no traceback.
        sys.exit(f"error: {error_report(error, parsed.output_dir)}")


def _with_adapter_defaults(config: RunConfig, options: Collection[str] | None) -> RunConfig:
    """Returns the configuration with what the adapter that the command reads knows."""
    if config.actions.do_train and not config.training.init_from and not config.training.fuse:
        return config
    from adapter_bert_tf.run.adapter_defaults import with_adapter_defaults  # Imports NumPy.

    adapters = flags.FLAGS["adapters"].value if "adapters" in (options or ()) else None
    return with_adapter_defaults(config, adapters)


def _check_found(config: RunConfig, options: Collection[str] | None) -> None:
    """Raises `InputError` for missing inputs, before seconds of importing TensorFlow."""
    from adapter_bert_tf.run.checks.paths import check_found  # Imports NumPy.

    compares = "adapters" in (options or ())  # Adapters of other folders than --adapter_dir.
    check_found(config, applies=not compares)
    if options is None and config.command.early_check:  # An analysis has its own rules.
        load(config.command.early_check)(config)


def _require_flags(words: Sequence[str]) -> None:
    """Raises `InputError` for other words: absl reads `--overwrite false` as `--overwrite`."""
    if words:
        raise InputError(
            f"Not a flag: {preview(words[0])}. A value is joined to its flag by =, as in "
            "--do_eval=false."
        )


def _prepare_process() -> None:
    before_tensorflow()
    if not flags.FLAGS["verbosity"].present:
        logging.set_verbosity(logging.WARNING)
    # An exit releases locks and temporary folders.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _stop(message: str, status: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(status)
