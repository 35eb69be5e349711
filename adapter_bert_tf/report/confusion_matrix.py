"""Confusion matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.report import charts
from adapter_bert_tf.report_blocks import Chart, Confusion, Table, format_number
from adapter_bert_tf.sanitize import printable, truncate

MAX_NUMBERED, MAX_DRAWN = 8, 40  # Classes.
MAX_PAIRS = 20
MAX_LABEL = 18  # Characters of a label on an axis.


def draw(block: Confusion, name: str) -> Chart | Table:
    """Makes a heat map of `[true, predicted]` counts; for many labels a table of pairs."""
    labels, table = block.labels, np.array(block.counts)
    if len(labels) > MAX_DRAWN:
        return _confused_pairs(block, table)
    proportions = table / np.maximum(table.sum(1, keepdims=True), 1)
    short_labels = [truncate(printable(text), MAX_LABEL) for text in labels]
    caption = (
        f"Confusion matrix: colours are proportions of each true {block.noun} (a row)"
        f"{f', numbers are {block.unit}' * (len(labels) <= MAX_NUMBERED)}. "
        f"n = {format_number(int(table.sum()))} {block.unit}, {block.sample}."
    )
    height = 1.3 + 2.6 * min(1.0, max(0.35, len(labels) / 12))
    description = f"Confusion matrix of {len(labels)} {block.nouns}"
    paint = _heat_map_painter(short_labels, table, proportions, block.noun)
    return Chart(charts.draw(f"{name}-confusion", description, paint, height), caption)


def _heat_map_painter(
    labels: Sequence[str], table: np.ndarray, proportions: np.ndarray, noun: str
) -> Any:
    def paint(axes: Any) -> None:
        cells = axes.pcolormesh(proportions, cmap="cividis", vmin=0, vmax=1, antialiased=False)
        ticks, font_size = np.arange(len(labels)) + 0.5, 9 if len(labels) <= 12 else 6
        is_long = sum(map(len, labels)) > 30
        axes.set_xticks(ticks, labels, rotation=60 if is_long else 0, fontsize=font_size,
                        ha="right" if is_long else "center", rotation_mode="anchor")  # fmt: skip
        axes.set_yticks(ticks, labels, fontsize=font_size)
        axes.set(xlabel=f"predicted {noun}", ylabel=f"true {noun}")
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.figure.colorbar(cells, ax=axes, label="proportion of row (0 to 1)")
        if len(labels) <= MAX_NUMBERED:
            for (y, x), count in np.ndenumerate(table):
                colour = "black" if proportions[y, x] > 0.45 else "white"
                axes.text(x + 0.5, y + 0.5, f"{count:,}", ha="center", va="center", color=colour)

    return paint


def _confused_pairs(block: Confusion, table: np.ndarray) -> Table:
    labels, noun = block.labels, block.noun
    wrong = table - np.diag(np.diag(table))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_PAIRS]
    pairs = [divmod(int(i), len(labels)) for i in order]
    rows = []
    for i, j in pairs:
        if count := int(wrong[i, j]):
            share = f"{count / table[i].sum():.1%}"
            rows.append([labels[i], labels[j], format_number(count), share])
    header = [f"true {noun}", f"predicted {noun}", block.unit, f"of the true {noun}"]
    title = f"Most confused pairs of {len(labels)} {block.nouns}"
    return Table(
        header,
        rows,
        f"{title} (n = {format_number(int(table.sum()))} {block.unit}, {block.sample})",
    )
