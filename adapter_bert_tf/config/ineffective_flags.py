"""Flags that were given and have no effect beside the others: named, and not refused.

A script that runs many commands may give all of them the same flags.
"""

import collections
from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from absl import logging

from adapter_bert_tf.config import table
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Row, Value
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.sanitize import preview

Needed: TypeAlias = tuple[str, tuple[Value, ...]]  # As `Row.only_with`.


def warn_of_ineffective_flags(flags: RunFlags, worded: Callable[[str], str] = str) -> None:
    """Logs what `unused` says.

    Args:
      flags: of the command.
      worded: makes of a sentence what is logged.
    """
    for sentence in ineffective_flags(flags):
        logging.warning("%s", worded(sentence))


def ineffective_flags(flags: RunFlags) -> list[str]:
    """A sentence for each flag without effect, and one for those of training where none is.

    Of a sweep, whose runs have other flags, only the empty ones: see `unused_in_sweep`.
    """
    empty = [row for row in table.ROWS if _is_empty(row, flags)]
    return [*map(_counts_as_not_given, empty), *([] if flags.sweep else _unused_in_run(flags))]


def _unused_in_run(flags: RunFlags) -> list[str]:
    given = [row for row in table.ROWS if _is_given(row, flags)]
    of_training = [] if flags.do_train else [row for row in given if row.role is Role.TRAINING]
    others = [row for row in given if row not in of_training]
    return [
        *([_all_without_training(of_training)] if of_training else []),
        *_without_effect(others, flags).values(),
    ]


def ineffective_in_sweep(
    flags: RunFlags, grid: Collection[str], runs: Sequence[RunFlags]
) -> list[str]:
    """A sentence for each flag that has no effect in the runs of a sweep.

    Args:
      flags: of the command.
      grid: names of the flags that vary.
      runs: the flags of each run.
    """
    varied = [row for row in map(table.row_of, grid) if _is_given(row, flags)]
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    for run in runs:
        given = [row for row in table.ROWS if _is_given(row, run)]
        found.update(_without_effect(given, run).items())
    return [
        *(
            f"{_named(row, flags)} has no effect: each run has its own. Leave it out."
            for row in varied
        ),
        *(sentence for (_, sentence), times in found.items() if times == len(runs)),
        *(
            f"{sentence} So it is in {times} of {len(runs)} runs."
            for (name, sentence), times in found.items()
            if name in grid and times < len(runs)
        ),
    ]


def _without_effect(rows: Sequence[Row], flags: RunFlags) -> dict[str, str]:
    """Dict from the flag to the sentence, of those that others are needed for."""
    missing = [(row, _missing(row, flags)) for row in rows]
    return {row.name: _said(row, needed, flags) for row, needed in missing if needed}


def _all_without_training(rows: Sequence[Row]) -> str:
    names = ", ".join(f"--{row.name}" for row in rows)
    return f"{names} {'has' if len(rows) == 1 else 'have'} no effect without --do_train."


def _is_empty(row: Row, flags: RunFlags) -> bool:
    """Whether a flag was given nothing, as `--init_from=$DIR` is where the shell has no `DIR`."""
    free = row.default is None and row.role is not Role.ONE_QUESTION
    return free and row.name in flags.given and flags.values.get(row.name) == ""


def _counts_as_not_given(row: Row) -> str:
    return f"--{row.name} is empty, and counts as not given."


def _is_given(row: Row, flags: RunFlags) -> bool:
    """Whether the user gave a flag another value than its usual one."""
    if row.name not in flags.given or row.name not in flags.values or _is_empty(row, flags):
        return False
    return flags.values[row.name] not in (flags.definitions[row.name].default, row.earlier)


def _missing(row: Row, flags: RunFlags) -> Needed | None:
    """The other flag, and the values of it, without which this one has no effect, if it has none.

    Where that other flag has none itself, it is what that one needs.
    """
    if not row.only_with:
        return None
    other, wanted = row.only_with
    # A saved adapter says what the method is; what is left out of it is, whatever that was.
    if other == "tuning" and (flags.init_from or _is_of_saved(row, flags)):
        return None
    if needed := _missing(table.row_of(other), flags):
        return needed
    there = flags.values[other]
    there = there.lower() if isinstance(there, str) else there  # As names of tasks are read.
    has_effect = there in wanted if wanted else there is not None
    return None if has_effect else row.only_with


def _is_of_saved(row: Row, flags: RunFlags) -> bool:
    return row.role is Role.LEFT_OUT and not flags.do_train


def _said(row: Row, beside: Needed, flags: RunFlags) -> str:
    other, wanted = beside
    words = [f"--{other}" if value is True else f"--{other}={value}" for value in wanted]
    needed = " or ".join(words) or f"--{other}"
    return f"{_named(row, flags)} has no effect without {needed}."


def _named(row: Row, flags: RunFlags) -> str:
    return f"--{row.name}={preview(flags.values[row.name])}"
