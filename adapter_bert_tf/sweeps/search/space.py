"""What a search may choose: lists of values, and ranges (`{low: 1e-5, high: 1e-2, log: true}`)."""

from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.config.parsing import parse_value
from adapter_bert_tf.config.settings import BY_NAME
from adapter_bert_tf.errors import InputError, error_context
from adapter_bert_tf.sanitize import preview

KEYS = ("low", "high", "log", "step")
DIGITS = 4  # Significant digits of a drawn number, which is part of a folder's name.


def parse_range(name: str, content: Mapping[Any, Any]) -> dict[str, Any]:
    """Returns the range of a setting: `low`, `high`, and `log` or `step`. Raises `InputError`.

    Args:
      name: of the setting.
      content: as in the YAML file.
    """
    with error_context(f"the range of {name}"):
        if unknown := [key for key in content if key not in KEYS]:
            raise InputError(f"has no {preview(unknown)}. It may have {', '.join(KEYS)}.")
        if BY_NAME[name].kind not in ("integer", "real"):
            raise InputError(f"is for numbers. Use a list: `{name}: [values]`.")
        low, high, step = (_number(name, content, key) for key in ("low", "high", "step"))
        log = content.get("log", False)
        if not isinstance(log, bool):
            raise InputError(f"log is true or false. Received: {preview(log)}")
        if low is None or high is None or not low < high:
            raise InputError(f"needs low and high, low < high. Received: {preview(dict(content))}")
        if log and (low <= 0 or step is not None):
            raise InputError(f"log needs low > 0, and no step. Received: {preview(dict(content))}")
        if step is not None and not 0 < step <= high - low:
            raise InputError(f"step is from 0 to high - low. Received: {preview(step)}")
    return {"low": low, "high": high, "log": log, "step": step}


def _number(name: str, content: Mapping[Any, Any], key: str) -> Any:
    """Returns a number of a range as its setting has it; bounds must be valid values."""
    value = content.get(key)
    if isinstance(value, bool | list | dict):
        raise InputError(f"{key} is a number. Received: {preview(value)}")
    if key != "step" or value is None:
        return parse_value(BY_NAME[name], value)
    try:
        return int(str(value)) if BY_NAME[name].kind == "integer" else float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"step is a number. Received: {preview(value)}") from error


def is_range(values: Any) -> bool:
    """Whether the entry of a grid is a range; otherwise it is a list."""
    return isinstance(values, dict)


def corners(grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns settings that have each end of each range and each value of each list once."""
    ends = {n: [v["low"], v["high"]] if is_range(v) else v for n, v in grid.items()}
    first = {name: values[0] for name, values in ends.items()}
    others = [first | {name: value} for name, values in ends.items() for value in values[1:]]
    return [first, *others]


def rounded(grid: Mapping[str, Any], drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a drawn setting, in the order of the grid, with short numbers inside the ranges."""
    setting = {}
    for name, values in grid.items():
        value = drawn[name]
        if is_range(values) and isinstance(value, float) and values["step"] is None:
            value = min(max(float(f"{value:.{DIGITS}g}"), values["low"]), values["high"])
        setting[name] = value
    return setting
