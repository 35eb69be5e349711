"""Assigns the weights of a checkpoint to a model's variables by name; all of them must match."""

from collections.abc import Mapping, Sequence

import numpy as np

from adapter_bert_tf.adapters.variable_specs import VariableSpec
from adapter_bert_tf.errors import Mismatch
from adapter_bert_tf.sanitize import truncate


def assign_weights(variables, values, source):
    """Assigns every base variable, and those of adapters and head that the checkpoint has.

    `variables` and `values` are by common name; `source` is the path. Returns the names of
    variables that are missing in the checkpoint, all of adapters or head. Raises `InputError`, and
    assigns nothing, if a base variable is missing, a shape differs, or the checkpoint has other
    variables.
    """
    head = {name: variable for name, variable in variables.items() if name.startswith("head/")}
    if not head or not all(
        name in values and shapes_match(values[name].shape, variable.shape)
        for name, variable in head.items()
    ):  # A head of another task: the new one starts fresh.
        values = {name: value for name, value in values.items() if not name.startswith("head/")}
    missing = [name for name in variables if name not in values]
    adapters = {name for name in variables if not name.startswith(("bert/", "head/"))}
    # The checkpoint has all variables of the adapters or none.
    added = adapters if adapters <= set(missing) else set()
    problems = {
        "missing in the checkpoint": [
            name for name in missing if name not in added and not name.startswith("head/")
        ],
        "not in the model": [name for name in values if name not in variables],
        "another shape": [
            f"{name}: checkpoint {values[name].shape}, model {tuple(variable.shape)}"
            for name, variable in variables.items()
            if name in values and not shapes_match(values[name].shape, variable.shape)
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
    """Checks the shapes of a checkpoint against the base's `specs`. Raises as `assign_weights`."""
    problems = {
        "missing in the checkpoint": [name for name in specs if name not in shapes],
        "not in the model": [
            name for name in shapes if name.startswith("bert/") and name not in specs
        ],
        "another shape": [
            f"{name}: checkpoint {shapes[name]}, model {spec.shape}"
            for name, spec in specs.items()
            if name in shapes and not shapes_match(shapes[name], spec.shape)
        ],
    }
    _refuse(problems, source)


def _refuse(problems: Mapping[str, Sequence[str]], source: str) -> None:
    """Raises `InputError` if there are problems, by title."""
    if any(problems.values()):
        raise Mismatch(
            f"{source} does not match the model of the configuration file and the adapter "
            f"settings:{''.join(_listing(*item) for item in problems.items())}\n"
            "Use the bert_config.json of the checkpoint and, for a trained one, its adapter size."
        )


def shapes_match(actual, expected):
    """Whether a shape is the expected one, or the flat shape of it in Google's checkpoints.

    Attention kernels are `[hidden, heads, size]` in Model Garden, `[hidden, hidden]` at Google.
    """
    shape = tuple(expected)
    flat = {shape}
    if len(shape) == 3:
        flat |= {(shape[0], shape[1] * shape[2]), (shape[0] * shape[1], shape[2])}
    elif len(shape) == 2:
        flat |= {(shape[0] * shape[1],)}
    return tuple(actual) in flat


def _listing(title, rows):
    if not rows:
        return ""
    first = "".join(f"\n    {truncate(row, 160)}" for row in rows[:8])
    more = f"\n    ... and {len(rows) - 8} more" if len(rows) > 8 else ""
    return f"\n  {title} ({len(rows)}):{first}{more}"
