"""How the start of the adapters decides what they learn (Houlsby et al. 2019, Figure 6, right)."""

from typing import Any

from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.sweeps import line_plots, sweep_analysis
from adapter_bert_tf.output.provenance import command

NAME = "init_scale"
SCALES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def run(parsed: Any) -> None:
    """Runs the command.

    Args:
      parsed: `absl.flags.FLAGS`, parsed.

    Raises:
      InputError: for anything wrong with the flags or the data, before the first run.
    """
    flags = sweep_analysis.flags_of(parsed, NAME, common.pictures_of(NAME))
    scales = (
        sweep_analysis.numbers(parsed.scales, "scales", float, 1e-12, 100)
        if parsed.scales
        else SCALES
    )
    found = sweep_analysis.points(
        common.kind_of(parsed), flags, {"adapter_init_scale": scales}, "adapters", "runs"
    )
    if found:
        made = {f"{NAME}.csv": sweep_analysis.table(found)}
        figure = line_plots.draw(
            found,
            lambda point: float(point.setting),
            "standard deviation of the adapters' first weights",
        )
        made |= outputs.pictures(figure, NAME, command())
        print(f"By the start: {', '.join(outputs.write(flags.output_dir, made))}", flush=True)
