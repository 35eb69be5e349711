"""Blocks of a report page, as plain values; only the template writes and escapes HTML."""

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Table:
    """A table.

    Args:
      header: names of the columns.
      rows: rows of cells; a cell is a text, a formatted number or a `Link`.
      caption: text above the table.
      marked: number of the highlighted row, or None.
      folded: whether it is collapsed at first.
      words: whether most cells are texts and not numbers.
      place: layout: `tall` for room next to two other blocks, `wide` for the full width, or "".
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
    """A cell with a link, relative to the page."""

    text: str
    href: str


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart.

    Args:
      svg: result of `charts.draw`.
      caption: description with n and seeds.
    """

    svg: Any
    caption: str
    kind: str = "chart"


@dataclasses.dataclass(frozen=True)
class Plot:
    """A chart as values, which the report draws.

    Args:
      name: for ids, different from those of the other plots of an evaluated set.
      about: what it shows, for readers who cannot see it.
      caption: what it shows, with n and seeds.
      x_label, y_label: of the axes.
    """

    name: str
    about: str
    caption: str
    x_label: str
    y_label: str


@dataclasses.dataclass(frozen=True)
class CalibrationPlot(Plot):
    """How often answers were right, by their probability.

    Args:
      bins: dicts with `probability`, `share` and `count`.
    """

    bins: Sequence[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class ScatterPlot(Plot):
    """Predicted by true values.

    Args:
      points: pairs of true and predicted value.
    """

    points: Sequence[Sequence[float]]


@dataclasses.dataclass(frozen=True)
class Histogram(Plot):
    """Numbers of examples by a percentage.

    Args:
      counts: of each of some bins of equal width, from 0 to 100%.
    """

    counts: Sequence[int]


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture from an analysis in the folder.

    Args:
      uri: a data URI, so that the page is a single file.
      caption: description.
      command: the command that made it, or "".
    """

    uri: str
    caption: str
    command: str
    kind: str = "picture"


@dataclasses.dataclass(frozen=True)
class Examples:
    """Single examples with their texts.

    Args:
      caption: text above the list.
      items: dicts with `facts`, pairs of name and value, and `texts`, each a list of parts; the
        second part is highlighted.
    """

    caption: str
    items: Sequence[dict[str, Any]]
    kind: str = "examples"


@dataclasses.dataclass(frozen=True)
class Code:
    """A shell command."""

    text: str
    caption: str
    kind: str = "code"


@dataclasses.dataclass(frozen=True)
class Note:
    """A sentence."""

    text: str
    kind: str = "note"


Block = Table | Chart | Plot | Picture | Examples | Code | Note


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of a page; sections without blocks are not shown."""

    title: str
    blocks: Sequence[Block]


def format_number(value: Any, digits: int = 4) -> str:
    """Formats a number as `0.8222`, `1,204` or `3e-05`; other values as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (abs(value) >= 1000 and value == round(value)):
        return f"{round(value):,}"
    if value and abs(value) < 10**-digits:
        return f"{value:.3g}"
    return f"{value:.{digits}f}" if abs(value) < 1000 else f"{value:,.1f}"
