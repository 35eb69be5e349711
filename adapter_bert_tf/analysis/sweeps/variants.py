"""Variations of Houlsby's adapter (Houlsby et al. 2019, section 3.6) in one table."""

import os
import statistics
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.analysis import common, outputs, plots
from adapter_bert_tf.analysis.sweeps import line_plots, sweep_analysis
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import Occupied
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
    """Trains each variation. Raises `InputError` before the first run."""
    names = [*outputs.file_names(NAME), f"{NAME}_runs.csv", *(f"{name}.json" for name in VARIANTS)]
    sweep_analysis.check_analysis(config, NAME, names)
    runner, cache = common.runner_for(config), RunCache()
    sweep_analysis.read_data(runner, config, cache)  # Before anything is written.
    paths = _write_configs(config)
    grid = {"adapter": list(paths.values())}
    points = sweep_analysis.GridRunner(runner, config, cache).run(grid, "adapters", "runs")
    if not points:
        return
    scored = sweep_analysis.finished(points)
    groups = {name: [p for p in scored if p.setting == path] for name, path in paths.items()}
    rows = [_row(name, group) for name, group in groups.items() if group]
    texts = [[f"{v:.4f}" if isinstance(v, float) else str(v) for v in row] for row in rows]
    print(_format_table([list(FIELDS), *texts]), flush=True)
    tables = {
        f"{NAME}.csv": outputs.csv_table(FIELDS, texts),
        f"{NAME}_runs.csv": sweep_analysis.points_table(points),
    }
    interval_name = f"median and range of {line_plots.seed_count(scored)}"
    figure = plots.draw_intervals(
        points[0].task, [[*row[:5], row[-1]] for row in rows], interval_name
    )
    paths_text = outputs.write(config.output.folder, tables, figure, NAME, command())
    print(f"Variations: {paths_text}", flush=True)


def _format_table(rows: list[list[str]]) -> str:
    """Formats rows as lines of aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _write_configs(config: RunConfig) -> dict[str, str]:
    """Writes missing configurations; returns their paths by variation. Raises `InputError`."""
    size = config.method.adapter_size or AdapterConfig().bottleneck_size
    paths: dict[str, str] = {}
    texts: dict[str, str] = {}
    for name, fields in VARIANTS.items():
        variant = AdapterConfig(size, **fields)
        path = paths[name] = os.path.join(config.output.folder, f"{name}.json")
        if not storage.exists(path):
            texts[path] = variant.to_json()
        elif storage.read_bytes(path) != variant.to_json().encode():
            raise Occupied(
                f"{path} says something else than the variation {name!r} of size {size}. Choose "
                "another --output_dir."
            )
    if not config.actions.dry_run:
        for path, text in texts.items():
            storage.write_text(path, text)
    return paths


def _row(name: str, points: list[sweep_analysis.Point]) -> list[Any]:
    values = [point.value for point in points]
    median, ends = statistics.median(values), (min(values), max(values))
    first = points[0]
    return [name, first.metric, median, *ends, len(values), first.trained, first.examples]
