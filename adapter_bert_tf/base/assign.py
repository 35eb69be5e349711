"""Assigns what a checkpoint holds to a model's variables, by name, and demands that all fit."""

from collections.abc import Mapping, Sequence

import numpy as np

from adapter_bert_tf.adapters.variable_specs import VariableSpec
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import truncate


def assign_weights(variables, values, source):
    """Assigns every base variable; adapters and head too if the checkpoint has them.

    Args:
      variables: dict from common name to variable: `named_variables()` of the model.
      values: dict from common name to float array, what `read_weights` returns.
      source: the path, for messages.

    Returns:
      names of the variables that the checkpoint does not hold: exactly those that were added.

    Raises:
      InputError: if a base variable is missing, a shape differs, or the checkpoint holds encoder
        variables that the model has no place for. Nothing is assigned then.
    """
    if not _head_fits(variables, values):  # A head of another task: the new one starts fresh.
        values = {name: value for name, value in values.items() if not name.startswith("head/")}
    missing = [name for name in variables if name not in values]
    parts = {name for name in variables if not name.startswith(("bert/", "head/"))}
    # Parts are new as a whole, or in the checkpoint as a whole.
    added = parts if parts <= set(missing) else set()
    problems = {
        "missing in the checkpoint": [
            name for name in missing if name not in added and not name.startswith("head/")
        ],
        "no place in the model": [name for name in values if name not in variables],
        "another shape": [
            f"{name}: checkpoint {values[name].shape}, model {tuple(variable.shape)}"
            for name, variable in variables.items()
            if name in values and not fits(values[name], variable)
        ],
    }
    _refuse(problems, source)
    for name, variable in variables.items():
        if name in values:
            variable.assign(np.reshape(values[name], variable.shape))
    return missing


def check_shapes(
    specs: Mapping[str, VariableSpec], shapes: Mapping[str, tuple[int, ...]], source: str
) -> None:
    """Checks what a checkpoint holds of a base before anything is built or read.

    Args:
      specs: dict from common name to `Spec`, of the base that its configuration describes.
      shapes: dict from common name to shape, of all that the checkpoint holds.
      source: its path, for messages.

    Raises:
      InputError: as `assign_weights`.
    """
    problems = {
        "missing in the checkpoint": [name for name in specs if name not in shapes],
        "no place in the model": [
            name for name in shapes if name.startswith("bert/") and name not in specs
        ],
        "another shape": [
            f"{name}: checkpoint {shapes[name]}, model {spec.shape}"
            for name, spec in specs.items()
            if name in shapes and not shape_fits(shapes[name], spec.shape)
        ],
    }
    _refuse(problems, source)


def _refuse(problems: Mapping[str, Sequence[str]], source: str) -> None:
    """Raises `InputError` if there are problems, by title."""
    if any(problems.values()):
        raise InputError(
            f"{source} does not match the model of the configuration file and the adapter "
            f"settings:{''.join(_listing(*item) for item in problems.items())}\n"
            "Use the bert_config.json that came with the checkpoint and, for a trained one, its "
            "adapter size."
        )


def fits(value, variable):
    """Whether an array has a variable's shape; see `shape_fits`."""
    return shape_fits(value.shape, variable.shape)


def shape_fits(found, wanted):
    """Whether a shape is the wanted one, or the flat one that Google's names have for it.

    Attention kernels are `[hidden, heads, size]` in Model Garden, `[hidden, hidden]` at Google.
    """
    shape = tuple(wanted)
    flat = {shape}
    if len(shape) == 3:
        flat |= {(shape[0], shape[1] * shape[2]), (shape[0] * shape[1], shape[2])}
    elif len(shape) == 2:
        flat |= {(shape[0] * shape[1],)}
    return tuple(found) in flat


def _head_fits(variables, values):
    head = {name: variable for name, variable in variables.items() if name.startswith("head/")}
    return bool(head) and all(n in values and fits(values[n], head[n]) for n in head)


def _listing(title, rows):
    if not rows:
        return ""
    first = "".join(f"\n    {truncate(row, 160)}" for row in rows[:8])
    more = f"\n    ... and {len(rows) - 8} more" if len(rows) > 8 else ""
    return f"\n  {title} ({len(rows)}):{first}{more}"
