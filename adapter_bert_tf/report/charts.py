"""Small SVG charts in the page's colours, for light and dark mode.

matplotlib draws with placeholder colours, which become CSS variables in the SVG.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

WIDTH = 4.4  # Inches; about the width of a phone's screen, so letters have the page's size.
TEXT_COLOUR, GRID_COLOUR = "#010203", "#040506"
SERIES = ("#0a0101", "#0a0202", "#0a0303", "#0a0404", "#0a0505", "#0a0606")
CSS_VARIABLES = {TEXT_COLOUR: "--ink", GRID_COLOUR: "--rule"} | {
    colour: f"--series-{i}" for i, colour in enumerate(SERIES, 1)
}
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKERS = ("o", "s", "^", "D", "v", "X")  # Colour alone does not separate lines for everyone.
# Of metrics that are not from 0 to 1.
METRIC_RANGES = {
    **dict.fromkeys(("mcc", "pearson", "spearman"), "from -1 to 1"),
    "log_likelihood": "nats, at most 0",
}
OFF = (
    *("text.usetex", "text.parse_math", "axes.formatter.use_mathtext"),  # Labels may have `$`.
    "axes.formatter.useoffset",  # Ticks of near-equal values: not `1e-5+8.655e-1`.
    *("axes.spines.top", "axes.spines.right", "axes.unicode_minus", "legend.frameon"),
)
TEXTS = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")
SETTINGS: Any = {
    **dict.fromkeys(OFF, False),
    **dict.fromkeys(("axes.grid", "axes.axisbelow"), True),
    **dict.fromkeys(TEXTS, TEXT_COLOUR),
    **dict.fromkeys(("axes.edgecolor", "grid.color"), GRID_COLOUR),
    **dict.fromkeys(("svg.fonttype", "axes.facecolor", "figure.facecolor"), "none"),
    **dict.fromkeys(("grid.linewidth", "hatch.linewidth"), 0.6),
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.formatter.limits": (-4, 6),
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
}


def metric_range(names: Iterable[str]) -> str:
    """The range of metrics, by their names in results, for an axis."""
    ranges = {
        next((METRIC_RANGES[end] for end in METRIC_RANGES if name.endswith(end)), "from 0 to 1")
        for name in names
    }
    return ranges.pop() if len(ranges) == 1 else "at most 1"


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
