"""Bounded parsing and printing of untrusted text; imports nothing from this package."""

import functools
import json
import math
import re
import reprlib
from collections.abc import Sequence
from typing import Any

# Characters that change a terminal's lines or their order, or cannot be written as UTF-8.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # Python also decodes invalid UTF-8 to these.
MAX_PREVIEW = 200
MAX_DIGITS = 300  # Of a whole number; 309 digits may overflow a float.


def printable(text: str, keep: str = "") -> str:
    """Escapes control characters, such as `\\n` or `\\x1b`, and lone surrogates, except `keep`."""
    return _UNPRINTABLE.sub(lambda match: _escape(match[0], keep), text)


def _escape(character: str, keep: str) -> str:
    return character if character in keep else character.encode("unicode_escape").decode()


def is_utf8(text: object) -> bool:
    """Whether a text or path can be written as UTF-8, which TensorFlow needs for file names."""
    return not _SURROGATE.search(str(text))


def preview(value: Any, longest: int = MAX_PREVIEW) -> str:
    """Formats a short `repr` of any value, which may be huge, deeply nested or recursive."""
    return truncate(printable(_SHORT.repr(value)), longest)


def format_lines(numbers: Sequence[int], most: int = 10) -> str:
    """Formats at least one line number as `line 3` or `lines 3, 7, 9 and others`."""
    listed = ", ".join(map(str, numbers[:most])) + (" and others" if len(numbers) > most else "")
    return f"{'line' if len(numbers) == 1 else 'lines'} {listed}"


def truncate(text: str, longest: int) -> str:
    """Shortens a text of more than `longest` characters by cutting out its middle."""
    if len(text) <= longest:
        return text
    side = (longest - 5) // 2
    return f"{text[:side]} ... {text[-side:]}"


class _Short(reprlib.Repr):
    """`reprlib` that also formats numbers with more digits than Python prints."""

    def repr_int(self, x: int, level: int) -> str:
        if abs(x) < 10**40:
            return repr(x)
        return f"(a number of about {x.bit_length() * 0.30103:.0f} digits)"

    def repr_instance(self, x: Any, level: int) -> str:
        return truncate(repr(x), self.maxother)


_SHORT = _Short()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 3, MAX_PREVIEW, MAX_PREVIEW
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdict = 10


def parse_json(content: str | bytes, distinct: bool = False) -> Any:
    """Parses JSON text, or UTF-8 bytes, with or without a byte order mark.

    If `distinct`, names in an object must not repeat. Raises `ValueError` for invalid JSON, a
    number too large for a float, or too deep nesting.
    """
    text = content.decode("utf-8") if isinstance(content, bytes) else content
    try:
        return json.loads(
            text.removeprefix("\ufeff"),
            parse_int=_parse_int,
            parse_float=_parse_float,
            object_pairs_hook=_unique_names if distinct else None,
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def format_json(value: Any, ascii_only: bool = False) -> str:
    """Formats a value of a table as JSON: NaN and infinities, which JSON lacks, as null.

    Dates, decimals and other values of Parquet are their texts.
    """
    dump = functools.partial(json.dumps, ensure_ascii=ascii_only, default=str)
    try:
        return dump(value, allow_nan=False)
    except ValueError:
        return dump(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"it has a number of {len(digits):,} digits")
    return int(digits)


def _parse_float(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"it has a number too large for a float: {truncate(text, 40)}")
    return number


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"names must be unique in an object: {preview(names)}")
    return dict(pairs)
