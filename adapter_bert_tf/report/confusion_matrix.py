"""What classes are taken for."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.report import charts
from adapter_bert_tf.report.blocks import Block, Chart, Table, number
from adapter_bert_tf.sanitize import printable, truncate

MOST_NUMBERED, MOST_DRAWN = 8, 40  # Classes.
MOST_PAIRS = 20
LONGEST = 18  # Characters of a label on an axis.


def confusion(
    labels: Sequence[str], counts: Sequence[Sequence[int]], name: str, seed: str
) -> Block:
    """A heat map, or of very many classes the pairs that are confused most.

    Args:
      labels: of the classes.
      counts: int `[true, predicted]`.
      name: for ids.
      seed: as captions say it.
    """
    table = np.array(counts)
    if len(labels) > MOST_DRAWN:
        return _pairs(labels, table, seed)
    shares = table / np.maximum(table.sum(1, keepdims=True), 1)
    shown = [truncate(printable(text), LONGEST) for text in labels]
    caption = (
        f"Confusion matrix: colours are shares of each true class (a row)"
        f"{', numbers are examples' * (len(labels) <= MOST_NUMBERED)}. "
        f"n = {number(int(table.sum()))}, {seed}."
    )
    height = 1.3 + 2.6 * min(1.0, max(0.35, len(labels) / 12))
    about = f"Confusion matrix of {len(labels)} classes"
    paint = _painter(shown, table, shares)
    return Chart(charts.draw(f"{name}-confusion", about, paint, height), caption)


def _painter(labels: Sequence[str], table: np.ndarray, shares: np.ndarray) -> Any:
    def paint(axes: Any) -> None:
        cells = axes.pcolormesh(shares, cmap="cividis", vmin=0, vmax=1, antialiased=False)
        places, small = np.arange(len(labels)) + 0.5, 9 if len(labels) <= 12 else 6
        steep = sum(map(len, labels)) > 30
        axes.set_xticks(places, labels, rotation=60 if steep else 0, fontsize=small,
                        ha="right" if steep else "center", rotation_mode="anchor")  # fmt: skip
        axes.set_yticks(places, labels, fontsize=small)
        axes.set(xlabel="predicted class", ylabel="true class")
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.figure.colorbar(cells, ax=axes, label="share of row (0 to 1)")
        if len(labels) <= MOST_NUMBERED:
            for (y, x), count in np.ndenumerate(table):
                colour = "black" if shares[y, x] > 0.45 else "white"
                axes.text(x + 0.5, y + 0.5, f"{count:,}", ha="center", va="center", color=colour)

    return paint


def _pairs(labels: Sequence[str], table: np.ndarray, seed: str) -> Table:
    wrong = table - np.diag(np.diag(table))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = [divmod(int(i), len(labels)) for i in order]
    rows = [
        [labels[i], labels[j], number(int(wrong[i, j])), f"{wrong[i, j] / table[i].sum():.1%}"]
        for i, j in pairs
        if wrong[i, j]
    ]
    header = ["true class", "taken for", "examples", "share of the class"]
    said = f"What was confused most, of {len(labels)} classes"
    return Table(header, rows, f"{said} (n = {number(int(table.sum()))}, {seed})")
