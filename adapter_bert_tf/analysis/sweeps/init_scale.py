"""How the start of the adapters decides what they learn (Houlsby et al. 2019, Figure 6, right)."""

from collections.abc import Mapping

from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.sweeps import line_plots, sweep_analysis
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.output.provenance import command

NAME = "init_scale"
SCALES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def run(config: RunConfig, options: Mapping[str, str | None]) -> None:
    """Runs the command.

    Args:
      config: of the command.
      options: flags of this analysis, by name.

    Raises:
      InputError: for anything wrong with the flags or the data, before the first run.
    """
    sweep_analysis.check_analysis(config, NAME, common.pictures_of(NAME))
    scales = (
        sweep_analysis.numbers(options["scales"], "scales", float, 1e-12, 100)
        if options["scales"]
        else SCALES
    )
    found = sweep_analysis.points(
        common.runner_of(config), config, {"adapter_init_scale": scales}, "adapters", "runs"
    )
    if found:
        made = {f"{NAME}.csv": sweep_analysis.table(found)}
        figure = line_plots.draw(
            found,
            lambda point: float(point.setting),
            "standard deviation of the adapters' first weights",
        )
        made |= outputs.pictures(figure, NAME, command())
        print(
            f"By the start: {', '.join(outputs.write(config.output.output_dir or '', made))}",
            flush=True,
        )
