"""Warnings about given settings that have no effect with the others.

They are not errors: a script may give the same flags to many commands.
"""

import collections
from collections.abc import Callable, Collection, Sequence

from absl import logging

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Needed, Setting
from adapter_bert_tf.config.settings import BY_NAME, SETTINGS
from adapter_bert_tf.sanitize import preview


def warn_of_ineffective_flags(config: RunConfig, reword: Callable[[str], str] = str) -> None:
    """Logs a warning, as `reword` spells it, for each setting without effect."""
    for sentence in ineffective_flags(config):
        logging.warning("%s", reword(sentence))


def ineffective_flags(config: RunConfig) -> list[str]:
    """Returns sentences about settings without effect; for a sweep only about empty settings."""
    empty = [
        f"--{row.name} is empty, and counts as not given."
        for row in SETTINGS
        if _is_empty(row, config)
    ]
    return empty if config.sweeps.sweep else [*empty, *_ineffective_in_run(config)]


def _ineffective_in_run(config: RunConfig) -> list[str]:
    given = _given(config)
    if config.actions.do_train:
        return [*_missing_by_name(given, config).values()]
    training_only = [row for row in given if row.role is Role.TRAINING]
    others = [row for row in given if row.role is not Role.TRAINING]
    sentences = [*_missing_by_name(others, config).values()]
    if not training_only:
        return sentences
    names = ", ".join(f"--{row.name}" for row in training_only)
    verb = "has" if len(training_only) == 1 else "have"
    return [f"{names} {verb} no effect without --do_train.", *sentences]


def ineffective_in_sweep(
    config: RunConfig, grid: Collection[str], runs: Sequence[RunConfig]
) -> list[str]:
    """Returns sentences about settings without effect in the runs of a sweep."""
    varied = [row for row in map(BY_NAME.__getitem__, grid) if _is_given(row, config)]
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for run in runs:
        given = [r for r in _given(run) if not (r.or_in_sweep and config.value(r.or_in_sweep))]
        counts.update(_missing_by_name(given, run).items())
    in_all = [sentence for (_, sentence), count in counts.items() if count == len(runs)]
    in_some = [
        f"{sentence} This concerns {count} of {len(runs)} runs."
        for (name, sentence), count in counts.items()
        if name in grid and count < len(runs)
    ]
    return [
        *(f"{_as_flag(r, config)} has no effect: each run has its own." for r in varied),
        *in_all,
        *in_some,
    ]


def _given(config: RunConfig) -> list[Setting]:
    return [row for row in SETTINGS if _is_given(row, config)]


def _is_given(row: Setting, config: RunConfig) -> bool:
    """Whether the user gave a setting another value than its default."""
    if row.name not in config.given or row.name not in config.values or _is_empty(row, config):
        return False
    return config.value(row.name) not in (config.defaults[row.name], row.earlier)


def _is_empty(row: Setting, config: RunConfig) -> bool:
    """Whether a setting was given without a value, as `--init_from=$DIR` with an unset `DIR`."""
    optional = row.default is None and row.role is not Role.ONE_QUESTION
    return optional and row.name in config.given and config.values.get(row.name) == ""


def _missing_by_name(rows: Sequence[Setting], config: RunConfig) -> dict[str, str]:
    missing = [(row, _missing(row, config)) for row in rows]
    return {row.name: _sentence(row, needed, config) for row, needed in missing if needed}


def _missing(row: Setting, config: RunConfig) -> Needed | None:
    """Returns the missing setting, with its values, that a setting needs to have an effect."""
    if not row.only_with:
        return None
    other, values = row.only_with
    if other not in config.values or (other == "task_name" and not config.names_task):
        return None  # The command has only one of these values.
    # A saved adapter decides the method, so the setting may have an effect.
    applies_saved = row.role is Role.LEFT_OUT and not config.actions.do_train
    if other == "tuning" and (config.training.init_from or applies_saved):
        return None
    if needed := _missing(BY_NAME[other], config):
        return needed
    value = config.value(other)
    value = value.lower() if isinstance(value, str) else value  # As names of tasks are read.
    has_effect = value in values if values else value is not None
    return None if has_effect else row.only_with


def _sentence(row: Setting, missing: Needed, config: RunConfig) -> str:
    other, values = missing
    flags = [f"--{other}" if value is True else f"--{other}={value}" for value in values]
    needed = " or ".join(flags) or f"--{other}"
    return f"{_as_flag(row, config)} has no effect without {needed}."


def _as_flag(row: Setting, config: RunConfig) -> str:
    return f"--{row.name}={preview(config.value(row.name))}"
