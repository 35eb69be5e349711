"""The report of what is trained, by group and in all."""

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.variable_specs import BASE_GROUPS, groups
from adapter_bert_tf.training.trained import Tuning


def count(variables: Iterable[tf.Variable]) -> int:
    """Number of parameters of an iterable of variables."""
    return sum(int(variable.shape.num_elements()) for variable in variables)


def by_group(model: Any, trained: Mapping[str, tf.Variable]) -> dict[str, tuple[int, int]]:
    """Dict from group to its numbers of parameters: those that are trained, and all of it.

    Args:
      model: as in `select_trained`.
      trained: dict from common name to variable.
    """
    named, specs = model.named_variables(), model.specs()
    found = {}
    for group in groups():
        names = [name for name in named if specs[name].group == group]
        if names:
            part = count(trained[name] for name in names if name in trained)
            found[group] = (part, count(named[name] for name in names))
    return found


def report(
    model: Any, trained: Mapping[str, tf.Variable], tuning: Tuning, title: str | None = None
) -> str:
    """The lines that say what is trained: a title, by group, then adapter-bert's two."""
    total = count(model.named_variables().values())
    lines = [
        title or f"What tuning={tuning.method!r} trains:",
        f"  {'group':<12}{'trained':>14}{'of':>14}{'share of all':>15}",
    ]
    lines += [
        f"  {group:<12}{part:>14,}{whole:>14,}{part / total:>14.3%}"
        for group, (part, whole) in by_group(model, trained).items()
    ]
    in_total = count(trained.values())
    return "\n".join(
        [
            *lines,
            f"  {'all':<12}{in_total:>14,}{total:>14,}{in_total / total:>14.3%}",
            f"***** Total Parameters = {total} *****",
            f"***** Total Trainable Parameters = {in_total} *****",
        ]
    )


def per_task_report(model: Any, trained: Mapping[str, tf.Variable], tasks: int) -> str:
    """One line with the numbers that papers on several tasks compare.

    All parameters as a multiple of the base's, and those that are trained, divided by the number of
    tasks, in percent of the base's (Mahabadi et al. 2021, Table 1). Heads are among them.

    Args:
      model: as in `select_trained`.
      trained: dict from common name to variable.
      tasks: how many there are.
    """
    named, specs = model.named_variables(), model.specs()
    of_base = {*BASE_GROUPS} - {"head"}
    base = count(variable for name, variable in named.items() if specs[name].group in of_base)
    total, each = count(named.values()) / base, count(trained.values()) / tasks / base
    return f"Of {tasks} tasks: {total:.4f} x the base in all; {each:.3%} of it trained per task."
