"""Small SVG charts in the page's colours, for light and dark mode.

matplotlib draws with placeholder colours, which become CSS variables in the SVG.
"""

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

WIDTH = 4.4  # Inches; about the width of a phone's screen, so letters have the page's size.
TEXT_COLOUR, GRID_COLOUR = "#010203", "#040506"
SERIES = ("#0a0101", "#0a0202", "#0a0303", "#0a0404", "#0a0505", "#0a0606")
CSS_VARIABLES = {TEXT_COLOUR: "--ink", GRID_COLOUR: "--rule"} | {
    colour: f"--series-{i}" for i, colour in enumerate(SERIES, 1)
}
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKERS = ("o", "s", "^", "D", "v", "X")  # Colour alone does not separate lines for everyone.
SETTINGS: Any = {
    "text.usetex": False,
    "text.parse_math": False,  # Labels may have dollar signs.
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": TEXT_COLOUR,
    "axes.labelcolor": TEXT_COLOUR,
    "xtick.color": TEXT_COLOUR,
    "ytick.color": TEXT_COLOUR,
    "axes.edgecolor": GRID_COLOUR,
    "grid.color": GRID_COLOUR,
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


def draw(name: str, description: str, paint: Callable[[Any], None], height: float = 2.7) -> Any:
    """Draws an `<svg>` element, reproducible byte for byte.

    `name`, unique in a page, is the prefix of its ids; `description` is for screen readers; `paint`
    draws on matplotlib's axes; `height` is in inches.
    """
    import matplotlib
    from markupsafe import Markup, escape
    from matplotlib.figure import Figure

    content = io.StringIO()
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": name}), warnings.catch_warnings():
        # Texts stay texts in the SVG, so the browser draws glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        paint(figure.subplots())
        figure.savefig(content, format="svg", metadata={"Date": None})
    opening = Markup('<svg role="img" aria-label="{}" class="chart" ').format(description)
    return opening + Markup(_inline(content.getvalue(), str(escape(name))))


def _inline(svg: str, name: str) -> str:
    """Returns the text after `<svg ` of an SVG file, adapted for a page with other charts."""
    svg = svg[svg.index("<svg ") + len("<svg ") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.S)
    svg = re.sub(r'(?:width|height)="[\d.]+pt" ', "", svg, count=2)
    svg = re.sub(r'\b(?:xmlns:xlink|xmlns|version)="[^"]*" ?', "", svg, count=3)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(url\(|xlink:href=")#', lambda match: f"{match[1]}#{name}-", svg)
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font)", svg)
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
    for colour, variable in CSS_VARIABLES.items():
        svg = re.sub(rf"(fill|stroke): {colour}", rf"\1: var({variable})", svg)
    return svg.strip()


def style(i: int) -> dict[str, Any]:
    """Returns colour, line style and marker of a series."""
    return {
        "color": SERIES[i % len(SERIES)],
        "linestyle": LINE_STYLES[i % len(LINE_STYLES)],
        "marker": MARKERS[i % len(MARKERS)],
    }
