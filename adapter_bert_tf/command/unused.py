"""Flags that were given and have no effect beside the others: named, and not refused.

A script that runs many commands may give all of them the same flags.
"""

from adapter_bert_tf.command import table
from adapter_bert_tf.command.row import Row
from adapter_bert_tf.command.run_flags import RunFlags
from adapter_bert_tf.received import shown


def unused(flags: RunFlags) -> list[str]:
    """A sentence for each flag without effect; none of a sweep, whose runs have other flags."""
    rows = [row for row in table.ROWS if row.only_with and row.name in flags.values]
    return [] if flags.sweep else [_said(row, flags) for row in rows if _is_unused(row, flags)]


def _is_unused(row: Row, flags: RunFlags) -> bool:
    value = flags.values[row.name]
    other, wanted = row.only_with or ("", ())
    if other == "tuning" and flags.init_from:  # The adapter says what the method is.
        return False
    there = flags.values[other]
    there = there.lower() if isinstance(there, str) else there  # As names of tasks are read.
    usual = (flags.definitions[row.name].default, row.earlier)
    given = row.name in flags.given and value not in usual
    return given and not (there in wanted if wanted else there is not None)


def _said(row: Row, flags: RunFlags) -> str:
    other, wanted = row.only_with or ("", ())
    needed = " or ".join(f"--{other}={value}" for value in wanted) or f"--{other}"
    return f"--{row.name}={shown(flags.values[row.name])} has no effect without {needed}."
