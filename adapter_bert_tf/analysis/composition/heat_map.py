"""The heat map of whom fusions listen to: a panel a target task, members by layers."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.analysis import outputs
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview, printable, truncate

MOST_LAYERS, LARGEST_TABLE = 1_000, 64 << 20
MARKS = {"attention": "a", "feed_forward": "f"}  # After the layer, where members have both.
NAME = "fusion_map"
Panel = tuple[str, list[str], list[str], np.ndarray]


def read(paths: Sequence[str]) -> list[Panel]:
    """Panels (target, members, places, shares `[members, places]`) of the files of `fusion`.

    Raises:
      InputError: when one is missing, or none of these.
    """
    return [panel for path in paths for panel in panels(path, _content(path))]


def _content(path: str) -> bytes:
    if not storage.exists(path) or storage.isdir(path):
        raise InputError(f"There is no file {path!r}. `analysis fusion` writes such a table.")
    content: bytes = storage.read_bytes(path, LARGEST_TABLE + 1)
    if len(content) > LARGEST_TABLE:
        raise InputError(f"{path} is no table of `analysis fusion`: it is larger than these are.")
    return content


def panels(path: str, content: bytes) -> list[Panel]:
    """Panels of the content of a file of `fusion`, as of `read`; the path is for messages."""
    try:
        rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig")))
        values = dict(_value(row) for row in rows)
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise InputError(
            f"{path} is no table of `analysis fusion`: {truncate(repr(error), 200)}"
        ) from error
    if not values:
        raise InputError(f"{path} is no table of `analysis fusion`: it has no rows.")
    return [_panel(target, values) for target in dict.fromkeys(key[0] for key in values)]


def _value(row: dict[str, str]) -> tuple[tuple[str, str, int, str], float]:
    """A row as its place and its share. Raises `ValueError` and others."""
    layer, share = int(row["layer"]), float(row["attention"])
    if not 0 <= layer < MOST_LAYERS:
        raise ValueError(f"layer must be from 0 to {MOST_LAYERS - 1}, and not {layer}")
    if not 0 <= share <= 1:
        raise ValueError(f"attention must be a share from 0 to 1, and not {share}")
    return (row["target"], row["member"], layer, row["sublayer"]), share


def _panel(target: str, values: dict[tuple[str, str, int, str], float]) -> Panel:
    own = {key[1:]: value for key, value in values.items() if key[0] == target}
    members = list(dict.fromkeys(member for member, _, _ in own))
    places = sorted({(layer, sublayer) for _, layer, sublayer in own})
    both = len({sublayer for _, sublayer in places}) > 1
    names = [f"{layer + 1}{MARKS.get(s, preview(s)) if both else ''}" for layer, s in places]
    shares = np.array([[own.get((m, *place), np.nan) for place in places] for m in members])
    return target, members, names, shares


def pictures(name: str, drawn: Sequence[Panel], command: str) -> dict[str, bytes]:
    """The files `NAME.png` and `NAME.svg`; of the same panels and command the same bytes.

    Args:
      name: of the files.
      drawn: panels of `read`.
      command: that made them; it is kept in the files.
    """
    return outputs.pictures(draw(drawn), name, command)


def draw(panels: Sequence[Panel]) -> Any:
    """The figure; colours are of one scale for all panels, and survive greyscale."""
    from matplotlib.figure import Figure

    wide = [max(len(places), 3) for _, _, places, _ in panels]
    tall = max(len(members) for _, members, _, _ in panels)
    size = (2.0 + 0.62 * sum(wide) + 0.5 * len(panels), 1.2 + 0.42 * tall)
    figure = Figure(figsize=size, layout="constrained")
    same = all(members == panels[0][1] for _, members, _, _ in panels)
    all_axes = figure.subplots(1, len(panels), squeeze=False, width_ratios=wide, sharey=same)[0]
    highest = max(float(np.nanmax(shares)) for _, _, _, shares in panels)
    for axes, panel in zip(all_axes, panels, strict=True):
        image = _draw_panel(axes, panel, highest)
    figure.colorbar(image, ax=list(all_axes), label="mean attention")
    return figure


def _draw_panel(axes: Any, panel: Panel, highest: float) -> Any:
    target, members, places, shares = panel
    image = axes.imshow(shares, cmap="cividis", vmin=0, vmax=highest, aspect="auto")
    axes.set_title(f"target: {printable(target)}", fontsize=10, parse_math=False)
    axes.set_xticks(range(len(places)), places)
    axes.set_yticks(range(len(members)), [printable(m)[:24] for m in members], parse_math=False)
    axes.set_xlabel("layer")
    for (y, x), share in np.ndenumerate(shares):
        dark = share < highest / 2
        axes.text(
            x, y, label(share), ha="center", va="center", fontsize=8,
            color="white" if dark else "black",
        )  # fmt: skip
    return image


def label(share: float) -> str:
    """A share in two digits: `.07`, or `1`; nothing for none."""
    if np.isnan(share):
        return ""
    return "1" if share >= 0.995 else f"{share:.2f}"[1:]


def run(parsed: Any, command: str) -> None:
    """Draws tables in one map. Raises `InputError`."""
    outputs.require(parsed.output_dir, [f"{NAME}.png", f"{NAME}.svg"])
    made = pictures(NAME, read(parsed.tables), command)
    print(", ".join(outputs.write(parsed.output_dir, made)))
