"""Assigns what a checkpoint holds to a model's variables, by name, and demands that all fit."""

import numpy as np

from adapter_bert_tf.errors import InputError

OPTIONAL_PREFIXES = ("adapters/", "head/")


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
    missing = [name for name in variables if name not in values]
    lost = [name for name in missing if not name.startswith(OPTIONAL_PREFIXES)]
    # A head of another task is expected in a trained checkpoint; everything else must be used.
    extra = [name for name in values if name not in variables and not name.startswith("head/")]
    kept_head = _same_shape(variables, values, "head/")
    wrong = [
        f"{name}: checkpoint {values[name].shape}, model {tuple(variable.shape)}"
        for name, variable in variables.items()
        if name in values and not fits(values[name], variable)
        and not (name.startswith("head/") and not kept_head)
    ]
    partial = [n for n in missing if n.startswith("adapters/")
               and any(v.startswith("adapters/") for v in values)]
    problems = (_listing("missing in the checkpoint", lost + partial)
                + _listing("no place in the model", extra) + _listing("another shape", wrong))
    if problems:
        raise InputError(
            f"{source} does not match the model of the configuration file and the adapter "
            "settings:" + problems + "\nUse the bert_config.json that came with the checkpoint "
            "and, for a trained one, its adapter size."
        )
    for name, variable in variables.items():
        if name in values and (kept_head or not name.startswith("head/")):
            variable.assign(np.reshape(values[name], variable.shape))
    return missing if kept_head else sorted({*missing, *(n for n in variables if n.startswith("head/"))})


def fits(value, variable):
    """Whether an array has a variable's shape, or the flat one that Google's names have for it.

    Attention kernels are `[hidden, heads, head size]` in Model Garden, `[hidden, hidden]` at Google.
    """
    shape = tuple(variable.shape)
    flat = {shape}
    if len(shape) == 3:
        flat |= {(shape[0], shape[1] * shape[2]), (shape[0] * shape[1], shape[2])}
    elif len(shape) == 2:
        flat |= {(shape[0] * shape[1],)}
    return tuple(value.shape) in flat


def _same_shape(variables, values, prefix):
    pairs = [(values.get(n), v) for n, v in variables.items() if n.startswith(prefix)]
    return all(value is not None and fits(value, variable) for value, variable in pairs)


def _listing(title, rows):
    if not rows:
        return ""
    shown = "".join(f"\n    {row}" for row in rows[:8])
    more = f"\n    ... and {len(rows) - 8} more" if len(rows) > 8 else ""
    return f"\n  {title} ({len(rows)}):{shown}{more}"
