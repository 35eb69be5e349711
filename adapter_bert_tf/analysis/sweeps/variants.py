"""Houlsby's adapter against its variations (Houlsby et al. 2019, section 3.6), as one table."""

import dataclasses
import os
import statistics
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.comparison import plot
from adapter_bert_tf.analysis.sweeps import line_plots, sweep_analysis
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.run_cache import RunCache

NAME = "variants"
# Dict from a variation's name to the fields in which it differs from `houlsby`.
VARIANTS: dict[str, dict[str, Any]] = {
    "houlsby": {},
    "layer_norm": {"layer_norm": True},
    "depth_2": {"depth": 2},
    "tanh": {"activation": "tanh"},
    "relu": {"activation": "relu"},
    "swish": {"activation": "swish"},
    "attention_only": {"sublayers": ("attention",)},
    "feed_forward_only": {"sublayers": ("feed_forward",)},
    "parallel": {"placement": "parallel"},
}
FIELDS = ("variant", "metric", "median", "lowest", "highest", "seeds", "trained", "examples")


def run(config: RunConfig) -> None:
    """Runs the command.

    Args:
      config: of the command.

    Raises:
      InputError: for anything wrong with the flags or the data, before the first run.
    """
    names = [*common.pictures_of(NAME), f"{NAME}_runs.csv", *(f"{name}.json" for name in VARIANTS)]
    sweep_analysis.check_analysis(config, NAME, names)
    runner = common.runner_of(config)
    cache = RunCache()
    sweep_analysis.read_data(runner, config, cache)  # Before anything is written.
    paths = _configs(config)
    grid = {"adapter": list(paths.values())}
    found = sweep_analysis.points(runner, config, grid, "adapters", "runs", cache)
    if not found:
        return
    named = {path: name for name, path in paths.items()}
    scored = sweep_analysis.finished(found)
    per_name = {name: [p for p in scored if named[p.setting] == name] for name in paths}
    rows = [_row(name, same) for name, same in per_name.items() if same]
    text = [[f"{v:.4f}" if isinstance(v, float) else str(v) for v in row] for row in rows]
    print(_shown(text), flush=True)
    made = {
        f"{NAME}.csv": outputs.table(FIELDS, text),
        f"{NAME}_runs.csv": sweep_analysis.table(found),
    }
    figure = plot.draw(
        found[0].task,
        [[*row[:5], row[-1]] for row in rows],
        f"median and range of {line_plots.seeds_of(scored)}",
    )
    made |= outputs.pictures(figure, NAME, command())
    print(
        f"Variations: {', '.join(outputs.write(config.output.output_dir or '', made))}", flush=True
    )


def _shown(rows: list[list[str]]) -> str:
    """The table as lines of a terminal."""
    widths = [max(map(len, column)) for column in zip(FIELDS, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in (FIELDS, *rows)
    ]
    return "\n".join(line.rstrip() for line in lines)


def _configs(config: RunConfig) -> dict[str, str]:
    """Dict from each variation to a JSON file of its `AdapterConfig`, written if it is not there.

    Raises `InputError` for a file of that name that says something else.
    """
    size = config.method.adapter_size or PRESETS["houlsby"].bottleneck_size
    paths: dict[str, str] = {}
    texts: dict[str, str] = {}
    for name, fields in VARIANTS.items():
        variant = dataclasses.replace(PRESETS["houlsby"], bottleneck_size=size, **fields)
        path = paths[name] = os.path.join(config.output.folder, f"{name}.json")
        if not storage.exists(path):
            texts[path] = variant.to_json()
        elif storage.read_bytes(path) != variant.to_json().encode():
            raise InputError(
                f"{path} says something else than the variation {name!r} of size {size}, which is "
                "to be there. Choose another --output_dir."
            )
    if not config.actions.dry_run:
        for path, text in texts.items():
            storage.write_text(path, text)
    return paths


def _row(name: str, found: list[sweep_analysis.Point]) -> list[Any]:
    values = [point.value for point in found]
    middle, ends = statistics.median(values), (min(values), max(values))
    first = found[0]
    return [name, first.metric, middle, *ends, len(values), first.trained, first.examples]
