"""Blocks of a report page, as plain values; only the template writes and escapes HTML."""

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Table:
    """A table; a cell is a text, a formatted number or a `Link`."""

    header: Sequence[str]  # Names of the columns.
    rows: Sequence[Sequence[Any]]
    caption: str
    marked: int | None = None  # Number of the highlighted row.
    folded: bool = False  # Whether it is collapsed at first.
    words: bool = False  # Whether most cells are texts and not numbers.
    place: str = ""  # `tall` for room next to two other blocks, `wide` for the full width.
    kind: str = "table"


@dataclasses.dataclass(frozen=True)
class Link:
    """A cell with a link, relative to the page."""

    text: str
    href: str


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart, drawn by `charts.draw`; the caption has n and seeds."""

    svg: Any
    caption: str
    kind: str = "chart"


@dataclasses.dataclass(frozen=True)
class Plot:
    """A chart as values, which the report draws."""

    name: str  # For ids, unique among the plots of an evaluated set.
    about: str  # For readers who cannot see it.
    caption: str  # With n and seeds.
    x_label: str
    y_label: str


@dataclasses.dataclass(frozen=True)
class CalibrationPlot(Plot):
    """How often answers were right, by their probability."""

    bins: Sequence[dict[str, Any]]  # With `probability`, `share` and `count`.


@dataclasses.dataclass(frozen=True)
class ScatterPlot(Plot):
    """Predicted by true values."""

    points: Sequence[Sequence[float]]  # Pairs of true and predicted value.


@dataclasses.dataclass(frozen=True)
class Histogram(Plot):
    """Numbers of examples by a percentage."""

    counts: Sequence[int]  # Of bins of equal width, from 0 to 100%.


@dataclasses.dataclass(frozen=True)
class Bars(Plot):
    """Values from 0 to 1 by group, in one colour for each series."""

    series: Sequence[Sequence[tuple[str, float]]]  # Pairs of group and value.


@dataclasses.dataclass(frozen=True)
class Confusion:
    """Numbers of expected by predicted labels, which the report draws as a chart or a table."""

    labels: Sequence[str]
    counts: Sequence[Sequence[int]]  # [true, predicted]
    noun: str  # Of a label, such as `class`.
    nouns: str  # Of several.
    unit: str  # Of what is counted, such as `examples`.
    sample: str  # For the caption, such as `seed 0`.


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture from an analysis in the folder."""

    uri: str  # A data URI, so that the page is a single file.
    caption: str
    command: str  # That made it, or "".
    kind: str = "picture"


@dataclasses.dataclass(frozen=True)
class Mark:
    """A highlighted part of a text, with a label after it."""

    text: str
    label: str = ""
    colour: int = 0  # Number of the colour, from 0.


@dataclasses.dataclass(frozen=True)
class Examples:
    """Single examples with their texts.

    Items are dicts with `facts`, pairs of name and value, and `texts`, each a list of parts: plain
    texts, or a `Mark`.
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


Block = Table | Chart | Plot | Confusion | Picture | Examples | Code | Note


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of a page; sections without blocks are not shown."""

    title: str
    blocks: Sequence[Block]


def format_count(count: Any, noun: str) -> str:
    """Formats `1 word` or `1,204 words`, of `word`."""
    return f"{format_number(count)} {noun}{'s' * (count != 1)}"


def format_number(value: Any, digits: int = 4) -> str:
    """Formats a number as `0.8222`, `1,204` or `3e-05`; other values as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (abs(value) >= 1000 and value == round(value)):
        return f"{round(value):,}"
    if value and abs(value) < 10**-digits:
        return f"{value:.3g}"
    return f"{value:.{digits}f}" if abs(value) < 1000 else f"{value:,.1f}"
