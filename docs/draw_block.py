"""Draws docs/images/block.png: a block of BERT with its two adapters, and an adapter from inside.

    python docs/draw_block.py

After Figure 2 of Houlsby et al. 2019. What is trained is coloured, what is frozen is grey.
"""

import pathlib

import matplotlib
from matplotlib import patches

matplotlib.use("agg")
from matplotlib import pyplot as plt

PICTURE = pathlib.Path(__file__).parent / "images" / "block.png"
FROZEN, TRAINED, LINE = "#e3e6ea", "#8fd0a8", "#3c4650"
WIDTH, HEIGHT = 3.1, 0.5


def box(axes, x, y, text, trained=False, width=WIDTH):
    """A rounded box around a point, with a text."""
    corner = (x - width / 2, y - HEIGHT / 2)
    colour = TRAINED if trained else FROZEN
    style = "round,pad=0.02,rounding_size=0.09"
    axes.add_patch(
        patches.FancyBboxPatch(corner, width, HEIGHT, boxstyle=style, fc=colour, ec=LINE, lw=1.1)
    )
    axes.text(x, y, text, ha="center", va="center", fontsize=10, color="#101418")


def plus(axes, x, y):
    """A circle with a plus: a sum."""
    axes.add_patch(patches.Circle((x, y), 0.16, fc="white", ec=LINE, lw=1.1))
    axes.text(x, y - 0.015, "+", ha="center", va="center", fontsize=12)


def arrow(axes, x, low, high):
    """An arrow upwards."""
    axes.annotate("", (x, high), (x, low), arrowprops={"arrowstyle": "-|>", "color": LINE})


def skip(axes, x, low, high, side):
    """A line from a height to the sum at another, next to what it leaves out."""
    turn = x + side
    axes.plot([x, turn, turn], [low, low, high], color=LINE, lw=1.1)
    axes.annotate(
        "", (x + 0.16 * (1 if side > 0 else -1), high), (turn, high),
        arrowprops={"arrowstyle": "-|>", "color": LINE},
    )  # fmt: skip


def draw_block(axes):
    """The block: each sublayer, its adapter, the skip connection, the LayerNorm."""
    arrow(axes, 0, -0.35, 0.25)
    for low, sublayer in ((0, "multi-head attention"), (3.6, "feed-forward")):
        box(axes, 0, low + 0.5, sublayer)
        arrow(axes, 0, low + 0.75, low + 1.05)
        box(axes, 0, low + 1.3, "adapter", trained=True)
        arrow(axes, 0, low + 1.55, low + 1.89)
        plus(axes, 0, low + 2.05)
        skip(axes, 0, low - 0.05, low + 2.05, -1.9)
        arrow(axes, 0, low + 2.21, low + 2.5)
        box(axes, 0, low + 2.75, "LayerNorm", trained=True)
        arrow(axes, 0, low + 3.0, low + 3.85 if low == 0 else low + 3.4)
    axes.text(0, -0.55, "hidden states", ha="center", va="center", fontsize=10)


def draw_adapter(axes, x):
    """The adapter: down to the bottleneck, GELU, up, and its own skip connection."""
    low = 1.3
    axes.add_patch(
        patches.FancyBboxPatch(
            (x - 2.35, low - 0.55), 4.4, 4.35, boxstyle="round,pad=0.05,rounding_size=0.15",
            fc="#f4fbf6", ec="#58a877", lw=1.1, ls="--",
        )
    )  # fmt: skip
    axes.text(x - 2.2, low + 3.52, "adapter", fontsize=10, color="#2f7a4d")
    arrow(axes, x, low - 0.9, low - 0.1)
    box(axes, x, low + 0.15, "down: hidden to 64", trained=True)
    arrow(axes, x, low + 0.4, low + 0.85)
    box(axes, x, low + 1.1, "GELU", width=1.3)
    arrow(axes, x, low + 1.35, low + 1.8)
    box(axes, x, low + 2.05, "up: 64 to hidden", trained=True)
    arrow(axes, x, low + 2.3, low + 2.74)
    plus(axes, x, low + 2.9)
    skip(axes, x, low - 0.35, low + 2.9, -1.9)
    arrow(axes, x, low + 3.06, low + 4.2)


def main():
    """Writes the picture."""
    figure, axes = plt.subplots(figsize=(8.6, 5.4))
    draw_block(axes)
    draw_adapter(axes, 5.2)
    legend = [patches.Patch(fc=TRAINED, ec=LINE), patches.Patch(fc=FROZEN, ec=LINE)]
    axes.legend(
        legend, ["trained for each task, with its head", "frozen, shared by all tasks"],
        loc="lower right", frameon=False, bbox_to_anchor=(1.0, 0.86),
    )  # fmt: skip
    axes.set(xlim=(-2.3, 7.6), ylim=(-0.9, 7.2), aspect="equal")
    axes.axis("off")
    figure.savefig(PICTURE, dpi=110, bbox_inches="tight", metadata={"Software": None})


if __name__ == "__main__":
    main()
