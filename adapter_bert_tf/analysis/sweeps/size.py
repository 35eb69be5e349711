"""Metric by trained parameters: bottleneck sizes against top-k and LayerNorm-only tuning.

Houlsby et al. 2019, Figures 3 and 4. `size_map` joins several tasks, with percentiles over them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.sweeps import ledger, line_plots, sweep_analysis
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import Conflict
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.run_cache import RunCache

NAME = "size"
FULL = "full"  # Is not trained here, but drawn where a ledger has it.
MAX_SIZE = 16_384
SIZES = (2, 4, 8, 16, 32, 64, 128, 256)


def run(config: RunConfig, options: Mapping[str, str | None]) -> None:
    """Trains with each of `--sizes` and `--tops`, except what `--rows` has. Raises `InputError`."""
    sweep_analysis.check_analysis(config, NAME, outputs.file_names(NAME))
    if config.method.tuning != "adapters":
        raise Conflict(
            "`analyze size` compares --tuning=adapters with top_k and layer_norm. Received: "
            f"--tuning={config.method.tuning}. Leave it out."
        )
    sizes: Sequence[int] = SIZES
    if options["sizes"] is not None:
        sizes = sweep_analysis.parse_numbers(options["sizes"], "sizes", int, 1, MAX_SIZE)
    runner, cache = common.runner_for(config), RunCache()
    # Top-k tuning trains no frozen layers.
    max_top_k = cache.base(config.base).config.num_layers - config.method.frozen_layers
    tops: Sequence[int] = range(1, max_top_k + 1)
    if options["tops"] is not None:
        tops = sweep_analysis.parse_numbers(options["tops"], "tops", int, 1, max_top_k)
    known = []
    if options["rows"]:
        task = sweep_analysis.read_data(runner, config, cache)
        name = runner.table_name(config)
        known = [
            point._replace(task=name)
            for point in ledger.read_task(options["rows"].split(","), task)
        ]
    grids = sweep_analysis.GridRunner(runner, config, cache)
    planned: dict[str, dict[str, Sequence[Any]]] = {
        "adapters": {"adapter_size": sizes},
        "top_k": {"tuning": ["top_k"], "top_k": tops},
        "layer_norm": {"tuning": ["layer_norm"]},
    }
    for method, grid in planned.items():  # All, before the first takes hours.
        grids.check(grid, method)
    points = [p for method, grid in planned.items() for p in grids.complete(grid, method, known)]
    points += [point for point in known if point.method == FULL]
    if points and not config.actions.dry_run:
        tables = {f"{NAME}.csv": sweep_analysis.points_table(points)}
        figure = line_plots.draw(
            sweep_analysis.finished(points), line_plots.parameters, "trained parameters"
        )
        paths = outputs.write(config.output.folder, tables, figure, NAME, command())
        print(f"By size: {paths}", flush=True)
