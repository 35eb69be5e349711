"""What others wrote: read within bounds, and shown within bounds; imports nothing of ours."""

import json
import math
import re
import reprlib
from collections.abc import Sequence
from typing import Any

# What changes a terminal's lines or their order, and what cannot be written as UTF-8.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LONE = re.compile(r"[\ud800-\udfff]")  # Also how Python reads a byte that is no UTF-8.
LONGEST_SHOWN = 200
MOST_DIGITS = 300  # Of a whole number; one of 309 may be too large for a float.


def printable(text: str, keep: str = "") -> str:
    """A text without control characters and lone surrogates: `\\n`, `\\x1b`, `\\ud800` instead.

    Args:
      text: to print.
      keep: characters that stay as they are.
    """
    return _UNPRINTABLE.sub(lambda found: _escaped(found[0], keep), text)


def _escaped(character: str, keep: str) -> str:
    return character if character in keep else character.encode("unicode_escape").decode()


def is_utf8(text: object) -> bool:
    """Whether a text or path can be written as UTF-8: TensorFlow knows no other names of files."""
    return not _LONE.search(str(text))


def preview(value: Any, longest: int = LONGEST_SHOWN) -> str:
    """A short `repr` of anything, made without writing out all of it.

    Args:
      value: what was received; it may be huge, nested without end, or hold itself.
      longest: characters.
    """
    return truncate(printable(_SHORT.repr(value)), longest)


def format_lines(numbers: Sequence[int], most: int = 10) -> str:
    """`line 3`, or `lines 3, 7, 9 and others`.

    Args:
      numbers: of lines, at least one.
      most: that are listed.
    """
    listed = ", ".join(map(str, numbers[:most])) + (" and others" if len(numbers) > most else "")
    return f"{'line' if len(numbers) == 1 else 'lines'} {listed}"


def truncate(text: str, longest: int) -> str:
    """A text without its middle, where it is longer than `longest` characters."""
    if len(text) <= longest:
        return text
    kept = (longest - 5) // 2
    return f"{text[:kept]} ... {text[-kept:]}"


class _Short(reprlib.Repr):
    """`reprlib`, also of numbers with more digits than Python writes out."""

    def repr_int(self, x: int, level: int) -> str:
        if abs(x) < 10**40:
            return repr(x)
        return f"(a number of about {x.bit_length() * 0.30103:.0f} digits)"

    def repr_instance(self, x: Any, level: int) -> str:
        return truncate(repr(x), self.maxother)


_SHORT = _Short()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 3, LONGEST_SHOWN, LONGEST_SHOWN
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdict = 10


def parse_json(content: str | bytes, distinct: bool = False) -> Any:
    """What a JSON text says.

    Args:
      content: text, or UTF-8 bytes; a byte order mark before it does not matter.
      distinct: whether a name may stand only once in an object.

    Raises:
      ValueError: when it is none, holds a number that no float reaches, or nests too deeply.
    """
    text = content.decode("utf-8") if isinstance(content, bytes) else content
    try:
        return json.loads(
            text.removeprefix("\ufeff"),
            parse_int=_whole_number,
            parse_float=_number,
            object_pairs_hook=_distinct if distinct else None,
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"it holds a number of {len(digits):,} digits")
    return int(digits)


def _number(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"it holds a number that no float reaches: {truncate(text, 40)}")
    return number


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"a name stands twice among {preview(names)}")
    return dict(pairs)
