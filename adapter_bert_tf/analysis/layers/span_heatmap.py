"""The triangular heat map of Houlsby et al. 2019, Figure 6: what every span of layers is worth."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adapter_bert_tf.sanitize import printable

TITLES = {
    "both": "both adapters",
    "attention": "attention only",
    "feed_forward": "feed-forward only",
}


def grid(without: list[list[Any]], whole: float) -> np.ndarray:
    """Changes of a metric, in points: `[first, last]`, NaN where there is no such span.

    Args:
      without: rows of first layer, last layer, value.
      whole: the value with nothing removed.
    """
    layers = max(int(last) for _, last, _ in without) + 1
    changes = np.full((layers, layers), np.nan)
    for first, last, value in without:
        changes[first, last] = 100 * (value - whole)
    return changes


def draw(task: str, found: Mapping[str, Mapping[str, Any]]) -> Any:
    """The figure: a panel for each kind of removal, in one scale of colours.

    Args:
      task: its name.
      found: dict from `both` or a sublayer to what `ablation.scores` returns.
    """
    from matplotlib.figure import Figure

    grids = {name: grid(of["without"], of["whole"]) for name, of in found.items()}
    layers = len(next(iter(grids.values())))
    side = max(2.6, 0.55 * layers + 0.6)
    figure = Figure(figsize=(max(side * len(grids) + 1.3, 5.8), side + 0.9), layout="constrained")
    all_axes = figure.subplots(1, len(grids), squeeze=False)[0]
    lowest = min(min(float(np.nanmin(changes)) for changes in grids.values()), -0.1)
    highest = max(max(float(np.nanmax(changes)) for changes in grids.values()), 0.0)
    for axes, (name, changes) in zip(all_axes, grids.items(), strict=True):
        image = _panel(axes, changes, lowest, highest)
        axes.set_title(TITLES[name], fontsize=10)
    of = next(iter(found.values()))
    figure.suptitle(
        f"{printable(task)[:40]}: {of['metric']} {100 * of['whole']:.1f} "
        f"(n = {of['examples']:,}, one adapter of one seed)\n"
        "and its change without the adapters of a span of layers",
        fontsize=11,
        parse_math=False,
    )
    figure.colorbar(image, ax=list(all_axes), label=f"change of {of['metric']} (points)")
    return figure


def _panel(axes: Any, changes: np.ndarray, lowest: float, highest: float) -> Any:
    layers = len(changes)
    image = axes.imshow(changes, cmap="cividis", vmin=lowest, vmax=highest)
    names = [str(layer + 1) for layer in range(layers)]
    axes.set_xticks(range(layers), names)
    axes.set_yticks(range(layers), names)
    axes.set_xlabel("last layer removed")
    axes.set_ylabel("first layer removed")
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(False)
    if layers > 12:  # No room for numbers.
        return image
    for (first, last), change in np.ndenumerate(changes):
        if not np.isnan(change):
            dark = change < (lowest + highest) / 2
            said = f"{change:+.1f}" if abs(change) >= 0.05 else "0.0"
            axes.text(
                last, first, said, ha="center", va="center",
                fontsize=8, color="white" if dark else "black",
            )  # fmt: skip
    return image
