"""What a trained parameter buys: bottleneck sizes against top-k and LayerNorm-only tuning.

Houlsby et al. 2019, Figures 3 and 4. `size_map` joins several tasks, with percentiles over them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.sweeps import ledger, line_plots, sweep_analysis
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.run_cache import RunCache

NAME = "size"
FULL = "full"  # Is not trained here, but drawn where its rows are known.
LARGEST = 16_384
SIZES = (2, 4, 8, 16, 32, 64, 128, 256)


def run(config: RunConfig, options: Mapping[str, str | None]) -> None:
    """Runs the command.

    Args:
      config: of the command.
      options: flags of this analysis, by name.

    Raises:
      InputError: for anything wrong with the flags or the data, before the first run.
    """
    sweep_analysis.check_analysis(config, NAME, common.pictures_of(NAME))
    sizes: Sequence[int] = SIZES
    if options["sizes"] is not None:
        sizes = sweep_analysis.numbers(options["sizes"], "sizes", int, 1, LARGEST)
    cache = RunCache()
    runner, base = common.runner_of(config), cache.base(config.base)
    most = (
        base.config.num_layers - config.method.frozen_layers
    )  # Layers that top-k tuning can reach.
    tops: Sequence[int] = range(1, most + 1)
    if options["tops"] is not None:
        tops = sweep_analysis.numbers(options["tops"], "tops", int, 1, most)
    grids: dict[str, dict[str, Any]] = {
        "adapters": {"adapter_size": sizes},
        "top_k": {"tuning": ["top_k"], "top_k": tops},
        "layer_norm": {"tuning": ["layer_norm"]},
    }
    known = []
    if options["rows"]:
        known = ledger.of_task(
            options["rows"].split(","), sweep_analysis.read_data(runner, config, cache)
        )
    found = [
        point
        for method, grid in grids.items()
        for point in sweep_analysis.completed(runner, config, grid, method, cache, known)
    ]
    found += [point for point in known if point.method == FULL]
    if found and not config.actions.dry_run:
        made = {f"{NAME}.csv": sweep_analysis.table(found)}
        figure = line_plots.by_parameters(sweep_analysis.finished(found))
        made |= outputs.pictures(figure, NAME, command())
        print(
            f"By size: {', '.join(outputs.write(config.output.output_dir or '', made))}", flush=True
        )
