"""Values of settings from text, by the parsers of absl that the command line uses too."""

import os
import re
from collections.abc import Mapping
from typing import Any

from absl import flags

from adapter_bert_tf.config.setting import Setting, Value
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import truncate


def expand_user(path: str) -> str:
    """Expands `~/` at the start of paths, which shells do not do in `--flag=~/folder`.

    Args:
      path: one, or several with commas between, each with an optional `NAME=`.
    """
    return re.sub(r"(^|[,=])(~/)", lambda match: match[1] + os.path.expanduser(match[2]), path)


class PathParser(flags.ArgumentParser):
    """Parses flags that are paths."""

    def parse(self, argument: str) -> str:
        return expand_user(argument)


def parser_of(row: Setting) -> flags.ArgumentParser:
    """Returns absl's parser of a setting's values, which checks choices and bounds."""
    match row.kind:
        case "boolean":
            return flags.BooleanParser()
        case "choice":
            return flags.EnumParser(list(row.choices))
        case "integer":
            lowest, highest = row.lowest, row.highest
            return flags.IntegerParser(
                None if lowest is None else int(lowest), None if highest is None else int(highest)
            )
        case "real":
            return flags.FloatParser(row.lowest, row.highest)
    return PathParser() if row.path else flags.ArgumentParser()


def parse_value(row: Setting, value: Any) -> Value:
    """Returns the typed value of a setting. Raises `InputError` if it is invalid.

    Args:
      row: the setting.
      value: text as on the command line, a number, a bool, a path, a dict for `a=2,b=1`, a list for
        `1,2`, or None.
    """
    if value is None:
        return None
    text = as_text(value)
    try:
        parsed: Value = parser_of(row).parse(value if isinstance(value, bool) else text)
    except (ValueError, TypeError, flags.IllegalFlagValueError) as error:
        reason = truncate(str(error.args[0]), 300)
        raise InputError(f"--{row.name}={truncate(text, 100)}: {reason}") from error
    return parsed


def as_text(value: Any) -> str:
    """Returns a value as on the command line: `a=2,b=1` for a dict, `1,2` for a list."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
