"""What a trained parameter buys: bottleneck sizes against top-k and LayerNorm-only tuning.

Houlsby et al. 2019, Figures 3 and 4. `size_map` joins several tasks, with percentiles over them.
"""

from collections.abc import Sequence
from typing import Any

from adapter_bert_tf.analysis import common, outputs
from adapter_bert_tf.analysis.sweeps import ledger, line_plots, sweep_analysis
from adapter_bert_tf.config import table
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.run_cache import RunCache

NAME = "size"
FULL = "full"  # Is not trained here, but drawn where its rows are known.
LARGEST = 16_384
SIZES = (2, 4, 8, 16, 32, 64, 128, 256)


def run(parsed: Any) -> None:
    """Runs the command.

    Args:
      parsed: `absl.flags.FLAGS`, parsed.

    Raises:
      InputError: for anything wrong with the flags or the data, before the first run.
    """
    flags = sweep_analysis.flags_of(parsed, NAME, common.pictures_of(NAME))
    sizes: Sequence[int] = SIZES
    if parsed.sizes is not None:
        sizes = sweep_analysis.numbers(parsed.sizes, "sizes", int, 1, LARGEST)
    reused = RunCache()
    kind, base = common.kind_of(parsed), reused.base(flags.part(table.with_role(Role.BASE)))
    most = base.config.num_layers - flags.frozen_layers  # Layers that top-k tuning can reach.
    tops: Sequence[int] = range(1, most + 1)
    if parsed.tops is not None:
        tops = sweep_analysis.numbers(parsed.tops, "tops", int, 1, most)
    grids: dict[str, dict[str, Any]] = {
        "adapters": {"adapter_size": sizes},
        "top_k": {"tuning": ["top_k"], "top_k": tops},
        "layer_norm": {"tuning": ["layer_norm"]},
    }
    known = []
    if parsed.rows:
        known = ledger.of_task(
            parsed.rows.split(","), sweep_analysis.read_data(kind, flags, reused)
        )
    found = [
        point
        for method, grid in grids.items()
        for point in sweep_analysis.completed(kind, flags, grid, method, reused, known)
    ]
    found += [point for point in known if point.method == FULL]
    if found and not flags.dry_run:
        made = {f"{NAME}.csv": sweep_analysis.table(found)}
        figure = line_plots.by_parameters(sweep_analysis.finished(found))
        made |= outputs.pictures(figure, NAME, command())
        print(f"By size: {', '.join(outputs.write(flags.output_dir, made))}", flush=True)
