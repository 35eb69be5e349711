"""The best run of a sweep: what is said of it, kept of it, and made with it."""

import json
import os

from adapter_bert_tf import storage
from adapter_bert_tf.config import table
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.output.provenance import command
from adapter_bert_tf.run.init_from import recorded_flags
from adapter_bert_tf.run.job import run_plan
from adapter_bert_tf.run.planning import places_of, plan_run
from adapter_bert_tf.store.versions import installed_versions
from adapter_bert_tf.sweeps.grid import RECORD, folds_of


def describe_best(flags, setting, best, metrics, of_runs):
    """What was chosen, and where it is.

    Args:
      flags: `RunFlags` of the command.
      setting: dict, what the best runs differ in from others; empty: there is only one.
      best: `RunFlags` of the best run.
      metrics: names of what it was chosen by.
      of_runs: how many of the setting's runs finished, such as `2 of 3`.
    """
    by, shown = ", ".join(metrics), setting or "the only setting"
    if folds := folds_of(flags):
        return (
            f"Best on {len(folds)} folds ({by}; {of_runs} runs finished): {shown}. "
            f"{flags.output_dir}/sweep.csv has every run; train again without --folds for an "
            "adapter of all data."
        )
    return (
        f"Best on dev ({by}; {of_runs} seeds finished): {shown}; its best seed is {best.seed}. "
        f"{places_of(flags).adapter_dir} holds that adapter, {flags.output_dir}/sweep.csv every "
        "run."
    )


def write_record(flags, run_id, best, rows, metrics):
    """Writes the sweep's `run.json`.

    Args:
      flags: `RunFlags` of the command.
      run_id: digest of the sweep.
      best: `RunFlags` of the best run.
      rows: of all runs.
      metrics: names of what it was chosen by.
    """
    sweep = os.path.join(flags.output_dir, RECORD) if flags.sweep else None
    content = {
        "command": command(),
        "flags": recorded_flags(flags) | {"sweep": sweep},
        "versions": installed_versions(),
        "run": run_id,
        "best": os.path.basename(best.output_dir),
        "chosen_by": list(metrics),
        "runs": rows,
    }
    path = os.path.join(flags.output_dir, "run.json")
    storage.write_text(path, json.dumps(content, indent=2))


def apply_best(kind, flags, best, reused):
    """Predicts and exports with the best run's adapter, in the folder of the sweep.

    Args:
      kind: `Kind`.
      flags: `RunFlags` of the command.
      best: `RunFlags` of the best run.
      reused: `Reused`.
    """
    asked = best.changed(
        do_train=False,
        do_eval=False,
        do_predict=flags.do_predict,
        do_export=flags.do_export,
        export_dir=flags.export_dir,
        output_dir=flags.output_dir,
        adapter_dir=places_of(flags).adapter_dir,
        init_from=None,
        report=False,
    )
    # The run was of that method: nobody is told that its flags do not count.
    asked = asked.as_default(table.with_role(Role.METHOD))
    run_plan(plan_run(kind, asked, reused))
