"""Heat map of the attention of fusions: a panel for each target task, members by layers."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.analysis import outputs, plots
from adapter_bert_tf.errors import Damaged
from adapter_bert_tf.sanitize import preview, printable, truncate

MAX_LAYERS = 1_000
SUBLAYER_LETTERS = {"attention": "a", "feed_forward": "f"}  # Follow the layer if both exist.
NAME = "fusion_map"
Panel = tuple[str, list[str], list[str], np.ndarray]


def run(parsed: Any, command: str) -> None:
    """Draws tables in one map. Raises `InputError`."""
    outputs.require_writable(parsed.output_dir, [f"{NAME}.png", f"{NAME}.svg"])
    print(outputs.write(parsed.output_dir, {}, draw(read(parsed.tables)), NAME, command))


def read(paths: Sequence[str]) -> list[Panel]:
    """Panels (target, members, positions, attention `[members, positions]`) of tables of `fusion`.

    Raises `InputError`.
    """
    return [panel for path in paths for panel in parse_panels(path, outputs.read_table(path))]


def parse_panels(path: str, text: str) -> list[Panel]:
    """Panels of the text of a table of `fusion`; the path is for messages. Raises `InputError`."""
    try:
        values = dict(_parse_row(row) for row in csv.DictReader(io.StringIO(text)))
        if not values:
            raise ValueError("it has no rows")
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise Damaged(
            f"{path} is not a table of `analyze fusion`: {truncate(repr(error), 200)}"
        ) from error
    return [_panel(target, values) for target in dict.fromkeys(key[0] for key in values)]


def _parse_row(row: dict[str, str]) -> tuple[tuple[str, str, int, str], float]:
    """(target, member, layer, sublayer) and attention. Raises `KeyError` or `ValueError`."""
    layer, attention = int(row["layer"]), float(row["attention"])
    if not 0 <= layer < MAX_LAYERS:
        raise ValueError(f"layer must be from 0 to {MAX_LAYERS - 1}. Received: {layer}")
    if not 0 <= attention <= 1:
        raise ValueError(f"attention must be a share from 0 to 1. Received: {attention}")
    return (row["target"], row["member"], layer, row["sublayer"]), attention


def _panel(target: str, values: dict[tuple[str, str, int, str], float]) -> Panel:
    own = {key[1:]: value for key, value in values.items() if key[0] == target}
    members = list(dict.fromkeys(member for member, _, _ in own))
    positions = sorted({(layer, sublayer) for _, layer, sublayer in own})
    both = len({sublayer for _, sublayer in positions}) > 1
    names = [
        f"{layer + 1}{SUBLAYER_LETTERS.get(sublayer, preview(sublayer)) if both else ''}"
        for layer, sublayer in positions
    ]
    attention = [[own.get((m, *position), np.nan) for position in positions] for m in members]
    return target, members, names, np.array(attention)


def draw(panels: Sequence[Panel]) -> Any:
    """Draws all panels with one color scale."""
    widths = [max(len(positions), 3) for _, _, positions, _ in panels]
    height = max(len(members) for _, members, _, _ in panels)
    size = (2.0 + 0.62 * sum(widths) + 0.5 * len(panels), 1.2 + 0.42 * height)
    figure = plots.new_figure(*size)
    same_members = all(members == panels[0][1] for _, members, _, _ in panels)
    all_axes = figure.subplots(
        1, len(panels), squeeze=False, width_ratios=widths, sharey=same_members
    )[0]
    highest = max(float(np.nanmax(attention)) for _, _, _, attention in panels)
    for axes, panel in zip(all_axes, panels, strict=True):
        image = _draw_panel(axes, panel, highest)
    figure.colorbar(image, ax=list(all_axes), label="mean attention")
    return figure


def _draw_panel(axes: Any, panel: Panel, highest: float) -> Any:
    target, members, positions, attention = panel
    image = plots.draw_cells(axes, attention, 0, highest, format_proportion, "auto")
    plots.set_title(axes, f"target: {target}")
    axes.set_xticks(range(len(positions)), positions)
    axes.set_yticks(range(len(members)), [printable(m)[:24] for m in members], parse_math=False)
    axes.set_xlabel("layer")
    return image


def format_proportion(proportion: float) -> str:
    """Formats a number from 0 to 1 in two digits: `.07`, or `1`; "" for NaN."""
    if np.isnan(proportion):
        return ""
    return "1" if proportion >= 0.995 else f"{proportion:.2f}"[1:]
