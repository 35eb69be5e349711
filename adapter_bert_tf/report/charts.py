"""Charts as SVG of a few kilobytes that takes the page's colours, in light and in dark.

matplotlib draws with colours that stand for names; in the SVG they become CSS variables.
"""

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

WIDTH = 4.4  # Inches; on a phone about the width of the page, so that its letters are as large.
INK, FAINT = "#010203", "#040506"
SERIES = ("#0a0101", "#0a0202", "#0a0303", "#0a0404", "#0a0505", "#0a0606")
VARIABLES = {INK: "--ink", FAINT: "--rule"} | {
    colour: f"--series-{i}" for i, colour in enumerate(SERIES, 1)
}
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKERS = ("o", "s", "^", "D", "v", "X")  # Lines differ in more than colour.
SETTINGS: Any = {
    "text.usetex": False,
    "text.parse_math": False,  # A label with two dollars is a label.
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.edgecolor": FAINT,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "axes.formatter.use_mathtext": False,
    "axes.formatter.limits": (-4, 6),
    "axes.unicode_minus": False,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6,
}


def draw(name: str, about: str, paint: Callable[[Any], None], height: float = 2.7) -> Any:
    """An `<svg>` element, the same bytes for the same chart.

    Args:
      name: for its ids, different from those of the other charts of a page.
      about: what it shows, for who cannot see it.
      paint: function that draws on matplotlib's axes.
      height: in inches.
    """
    import matplotlib
    from markupsafe import Markup, escape
    from matplotlib.figure import Figure

    content = io.StringIO()
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": name}), warnings.catch_warnings():
        # Letters that matplotlib's font lacks are not drawn by it, but by the reader's browser.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        paint(figure.subplots())
        figure.savefig(content, format="svg", metadata={"Date": None})
    opened = Markup('<svg role="img" aria-label="{}" class="chart" ').format(about)
    return opened + Markup(_inlined(content.getvalue(), str(escape(name))))


def _inlined(svg: str, name: str) -> str:
    """What follows `<svg ` of a file, fit to stand in a page beside others."""
    svg = svg[svg.index("<svg ") + len("<svg ") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.S)
    svg = re.sub(r'(?:width|height)="[\d.]+pt" ', "", svg, count=2)
    svg = re.sub(r'\b(?:xmlns:xlink|xmlns|version)="[^"]*" ?', "", svg, count=3)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(url\(|xlink:href=")#', lambda found: f"{found[1]}#{name}-", svg)
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font)", svg)
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
    for colour, variable in VARIABLES.items():
        svg = re.sub(rf"(fill|stroke): {colour}", rf"\1: var({variable})", svg)
    return svg.strip()


def style(i: int) -> dict[str, Any]:
    """Colour, line and marker of the series of a number."""
    return {
        "color": SERIES[i % len(SERIES)],
        "linestyle": LINES[i % len(LINES)],
        "marker": MARKERS[i % len(MARKERS)],
    }
