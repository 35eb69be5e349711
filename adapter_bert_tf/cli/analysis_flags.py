"""Flags that only one analysis has, beside those of the command whose task it is."""

from absl import flags

# Dict from analysis to rows: name, default, help.
OPTIONS: dict[str, tuple[tuple[str, str | None, str], ...]] = {
    "ablation": (
        (
            "sublayers",
            "both",
            "Whose adapters are taken away, with commas between: both, attention, feed_forward.",
        ),
    ),
    "compare": (
        (
            "adapters",
            None,
            "Adapter directories or output folders, with commas between; NAME=DIR gives a name.",
        ),
    ),
    "init_scale": (("scales", None, "Standard deviations to try (default: 1e-7 to 1)."),),
    "size": (
        ("sizes", None, "Bottleneck sizes to try (default: 2 to 256)."),
        ("tops", None, "How many upper layers top-k tuning trains (default: all numbers)."),
        (
            "rows",
            None,
            "Ledgers of runs, JSON lines, with commas between; what they hold of the same task and "
            "data is not trained again.",
        ),
    ),
}


def define(analysis: str) -> None:
    """Makes the analysis' own flags known to absl."""
    for name, default, text in OPTIONS.get(analysis, ()):
        flags.DEFINE_string(name, default, text)


def names_of(analysis: str) -> list[str]:
    """Names of the flags that only this analysis has."""
    return [name for name, *_ in OPTIONS.get(analysis, ())]
