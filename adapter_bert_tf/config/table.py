"""The one table of flags, and what follows from it: which flags are free, swept, read, ...

A flag is added as a row of `flags_*.py`, with a role of `roles.py`; nothing else lists flags.
"""

from collections.abc import Callable

from adapter_bert_tf.config import flags_classifier, flags_shared, flags_squad, flags_training
from adapter_bert_tf.config.roles import Identity, Role
from adapter_bert_tf.config.row import Command, PathUse, Row

ROWS = (
    *flags_classifier.ROWS,
    *flags_squad.ROWS,
    *flags_shared.ROWS,
    *flags_training.ROWS,
)


def rows_of(command: Command) -> tuple[Row, ...]:
    """The rows of a command's flags."""
    return tuple(row for row in ROWS if command in row.commands)


def row_of(name: str) -> Row:
    """The row of a flag. Raises `KeyError`."""
    return {row.name: row for row in ROWS}[name]


def with_role(*roles: Role) -> tuple[str, ...]:
    """Names of the flags that have one of the roles."""
    return _names(lambda row: row.role in roles)


def _names(chosen: Callable[[Row], bool]) -> tuple[str, ...]:
    return tuple(row.name for row in ROWS if chosen(row))


def _with_identity(identity: Identity) -> tuple[str, ...]:
    return _names(lambda row: row.role.identity is identity)


def _with_path(path: PathUse) -> tuple[str, ...]:
    return _names(lambda row: row.path == path)


# With other values of these a run is still the same, and can be taken up again.
FREE = _with_identity(Identity.THE_SAME)
# With other values of these its training is the same.
ONLY_RESULTS = _with_identity(Identity.OTHER_RESULTS)
# The runs of a sweep cannot differ in these.
NOT_SWEPT = _names(lambda row: not row.role.swept)
# These decide what data a run holds, with the base's and, of a subset, the seed.
DATA = _names(lambda row: row.role.reads)
# These name files and folders.
PATHS = _names(lambda row: row.path is not None)
# What records mean that do not name a flag, where it is not the flag's default of today.
EARLIER = {row.name: row.earlier for row in ROWS if row.earlier is not None}
# `--config=RUN.json` leaves these to the command line.
NOT_REPEATED = _names(lambda row: not row.role.repeated)


def paths_read(training: bool) -> tuple[str, ...]:
    """Names of the flags that say what a run reads."""
    return _with_path("read") + (() if training else _with_path("either"))


def paths_written(training: bool) -> tuple[str, ...]:
    """Names of the flags that say where a run writes."""
    return _with_path("written") + (_with_path("either") if training else ())
