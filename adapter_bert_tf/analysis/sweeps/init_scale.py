"""Effect of the initial scale of adapters (Houlsby et al. 2019, Figure 6, right)."""

from collections.abc import Mapping, Sequence

from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.sweeps import line_plots, sweep_analysis
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.run_cache import RunCache

NAME = "init_scale"
SCALES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
X_LABEL = "standard deviation of the adapters' first weights"


def run(config: RunConfig, options: Mapping[str, str | None]) -> None:
    """Trains with each of `--scales`. Raises `InputError` before the first run."""
    sweep_analysis.check_analysis(config, NAME, outputs.file_names(NAME))
    scales: Sequence[float] = SCALES
    if options["scales"]:
        scales = sweep_analysis.parse_numbers(options["scales"], "scales", float, 1e-12, 100)
    grids = sweep_analysis.GridRunner(common.runner_for(config), config, RunCache())
    points = grids.run({"adapter_init_scale": scales}, "adapters", "runs")
    if points:
        tables = {f"{NAME}.csv": sweep_analysis.points_table(points)}
        figure = line_plots.draw(points, lambda point: float(point.setting), X_LABEL)
        paths = outputs.write(config.output.folder, tables, figure, NAME, command())
        print(f"By the start: {paths}", flush=True)
