"""The table of all settings, from which flags, help, YAML keys and Python keywords are made.

A new setting is a field of a section in `sections/`, with a role of `roles.py`.
"""

from collections.abc import Callable

from adapter_bert_tf.config.roles import Identity, Role
from adapter_bert_tf.config.section_list import SECTIONS
from adapter_bert_tf.config.setting import Command, PathUse, Setting, settings_of_section

SETTINGS: tuple[Setting, ...] = tuple(
    row for name, section in SECTIONS.items() for row in settings_of_section(name, section)
)
BY_NAME: dict[str, Setting] = {row.name: row for row in SETTINGS}
# The settings that most commands need, in the order of `--help`.
COMMON: tuple[str, ...] = (
    *("task_name", "data_dir", "text_a_column", "text_b_column", "label_column"),
    *("train_file", "predict_file", "version_2_with_negative", "base_model"),
    *("do_train", "do_eval", "do_predict", "do_export", "output_dir", "adapter_dir", "init_from"),
    *("tuning", "adapter", "adapter_size", "learning_rate", "num_train_epochs"),
    *("train_batch_size", "max_seq_length", "seed", "num_trials", "sweep"),
    *("config", "dry_run", "overwrite"),
)
# Settings that are not keywords of `abt.train`.
NOT_IN_PYTHON = (
    # The texts decide them, or `TrainedTask` replaces them.
    *("task_name", "data_dir", "label_column", "do_predict", "do_export", "adapter_dir"),
    # They only make sense on a command line, or leave no single adapter.
    *("config", "dry_run", "folds", "fold", "export_dir", "merge"),
    # `train` has arguments of these names.
    *("text_a_column", "text_b_column", "output_dir", "base_model"),
)


def settings_of(command: Command) -> tuple[Setting, ...]:
    """Settings of a command."""
    return tuple(row for row in SETTINGS if command in row.commands)


def common_of(command: Command) -> list[Setting]:
    """Settings that lead a command's `--help`."""
    own = [row for row in settings_of(command) if row.common]
    return own + [BY_NAME[name] for name in COMMON if command in BY_NAME[name].commands]


def python_options(command: Command | None = None) -> tuple[Setting, ...]:
    """Settings that `abt.train` takes as keywords, with a command's data or with any."""
    trained = [c for c in Command if c.python_data] if command is None else [command]
    return tuple(
        row
        for row in SETTINGS
        if row.in_python and row.name not in NOT_IN_PYTHON and {*row.commands} & {*trained}
    )


def with_role(*roles: Role) -> tuple[str, ...]:
    """Names of the settings that have one of the roles."""
    return _names(lambda row: row.role in roles)


def _names(chosen: Callable[[Setting], bool]) -> tuple[str, ...]:
    return tuple(row.name for row in SETTINGS if chosen(row))


def _with_identity(identity: Identity) -> tuple[str, ...]:
    return _names(lambda row: row.role.identity is identity)


def _with_path(path: PathUse) -> tuple[str, ...]:
    return _names(lambda row: row.path == path)


# A run with other values of these is the same run, and can be resumed.
FREE = _with_identity(Identity.THE_SAME)
# A run with other values of these trains the same weights.
ONLY_RESULTS = _with_identity(Identity.OTHER_RESULTS)
# The runs of a sweep cannot differ in these.
NOT_SWEPT = _names(lambda row: not row.role.swept)
# These decide which data a run reads; of a subset the seed does too.
DATA = _names(lambda row: row.role.reads)
PATHS = _names(lambda row: row.path is not None)
# Values of settings in records that do not name them, where the default has changed since.
EARLIER = {row.name: row.earlier for row in SETTINGS if row.earlier is not None}
# `--config=RUN.json` leaves these to the command line.
NOT_REPEATED = _names(lambda row: not row.role.repeated)


def paths_read(training: bool) -> tuple[str, ...]:
    """Names of the settings whose paths a run reads."""
    return _with_path("read") + (() if training else _with_path("either"))


def paths_written(training: bool) -> tuple[str, ...]:
    """Names of the settings whose paths a run writes."""
    return _with_path("written") + (_with_path("either") if training else ())
