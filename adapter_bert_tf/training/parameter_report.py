"""Numbers of trained parameters, by group and in total."""

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from adapter_bert_tf.adapters.variable_specs import BASE_GROUPS, groups
from adapter_bert_tf.training.tuning import Tuning


def count(variables: Iterable[tf.Variable]) -> int:
    """Counts the parameters of variables."""
    return sum(int(variable.shape.num_elements()) for variable in variables)


def count_by_group(model: Any, trained: Mapping[str, tf.Variable]) -> dict[str, tuple[int, int]]:
    """Dict from group to the numbers of its trained parameters and of all its parameters."""
    named, specs = model.named_variables(), model.specs()
    counts = {}
    for group in groups():
        names = [name for name in named if specs[name].group == group]
        if names:
            trained_count = count(trained[name] for name in names if name in trained)
            counts[group] = (trained_count, count(named[name] for name in names))
    return counts


def format_report(
    model: Any, trained: Mapping[str, tf.Variable], tuning: Tuning, title: str | None = None
) -> str:
    """Formats a title, the table of groups, and adapter-bert's two lines of totals."""
    total, trained_total = count(model.named_variables().values()), count(trained.values())
    rows = {**count_by_group(model, trained), "all": (trained_total, total)}
    lines = [
        title or f"What tuning={tuning.method!r} trains:",
        f"  {'group':<12}{'trained':>14}{'of':>14}{'share of all':>15}",
        *(
            f"  {group:<12}{part:>14,}{whole:>14,}{part / total:>14.3%}"
            for group, (part, whole) in rows.items()
        ),
        f"***** Total Parameters = {total} *****",
        f"***** Total Trainable Parameters = {trained_total} *****",
    ]
    return "\n".join(lines)


def format_per_task_report(model: Any, trained: Mapping[str, tf.Variable], tasks: int) -> str:
    """Formats the line of numbers that papers on multitask learning compare.

    All parameters as a multiple of the base's, and trained parameters per task as a percentage of
    the base's (Mahabadi et al. 2021, Table 1). Both include heads.
    """
    named, specs = model.named_variables(), model.specs()
    base_groups = {*BASE_GROUPS} - {"head"}
    base = count(variable for name, variable in named.items() if specs[name].group in base_groups)
    total, each = count(named.values()) / base, count(trained.values()) / tasks / base
    return f"Of {tasks} tasks: {total:.4f} x the base in all; {each:.3%} of it trained per task."
