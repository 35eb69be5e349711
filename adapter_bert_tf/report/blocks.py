"""What a page is made of: values. The template alone writes HTML, and escapes all texts."""

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Table:
    """A table.

    Args:
      header: of its columns.
      rows: of cells; a cell is a text, a number that is written already, or a `Link`.
      caption: what it is of.
      marked: number of the row that is set off, or None.
      folded: whether it is shown only when it is asked for.
      words: whether its cells are words more than numbers.
      place: `tall`, where two other blocks have room beside it, or `wide`, as the page; or "".
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str
    marked: int | None = None
    folded: bool = False
    words: bool = False
    place: str = ""
    kind: str = "table"


@dataclasses.dataclass(frozen=True)
class Link:
    """A cell that leads to another page, by a path that counts from this one."""

    text: str
    href: str


@dataclasses.dataclass(frozen=True)
class Chart:
    """A figure of ours.

    Args:
      svg: of `charts.draw`.
      caption: what it shows, with n and seeds.
    """

    svg: Any
    caption: str
    kind: str = "chart"


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure that an analysis left in the folder.

    Args:
      uri: a data URI, so that the page stays one file.
      caption: what it shows.
      command: that made it, or "".
    """

    uri: str
    caption: str
    command: str
    kind: str = "picture"


@dataclasses.dataclass(frozen=True)
class Examples:
    """Single examples with their texts.

    Args:
      caption: which these are.
      items: dicts with `facts`, pairs of name and value, and `texts`, each a list of parts, of
        which the second, where there is one, is set off.
    """

    caption: str
    items: Sequence[dict[str, Any]]
    kind: str = "examples"


@dataclasses.dataclass(frozen=True)
class Code:
    """What is typed in a shell."""

    text: str
    caption: str
    kind: str = "code"


@dataclasses.dataclass(frozen=True)
class Note:
    """A sentence."""

    text: str
    kind: str = "note"


Block = Table | Chart | Picture | Examples | Code | Note


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a page, with a title; one without blocks is left out."""

    title: str
    blocks: Sequence[Block]


def number(value: Any, digits: int = 4) -> str:
    """A number as a reader wants it: `0.8222`, `1,204`, `3e-05`; another value as its text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (abs(value) >= 1000 and value == round(value)):
        return f"{round(value):,}"
    if value and abs(value) < 10**-digits:
        return f"{value:.3g}"
    return f"{value:.{digits}f}" if abs(value) < 1000 else f"{value:,.1f}"
