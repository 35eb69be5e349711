"""The best run of a sweep: its description, its record, and what is made with it."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.settings import with_role
from adapter_bert_tf.output.provenance import command, installed_versions
from adapter_bert_tf.run.execute import run_plan
from adapter_bert_tf.run.init_from import recorded_settings
from adapter_bert_tf.run.planning import plan_run
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.sweeps.grid import RECORD, folds_of
from adapter_bert_tf.tasks import OWN


def describe_best(
    config: RunConfig,
    setting: Mapping[str, Any],
    best: RunConfig,
    metrics: Sequence[str],
    finished: str,
) -> str:
    """Returns a sentence with the best setting and the place of its adapter.

    Args:
      config: of the command.
      setting: of the best run; empty if there is only one setting.
      best: configuration of the best run.
      metrics: names of what it was chosen by.
      finished: how many of the setting's runs finished, such as `2 of 3`.
    """
    chosen_by, best_setting = ", ".join(metrics), setting or "the only setting"
    table = os.path.join(config.output.folder, "sweep.csv")
    if folds := folds_of(config):
        return (
            f"Best on {len(folds)} folds ({chosen_by}; {finished} runs finished): {best_setting}. "
            f"{table} has every run; train again in another --output_dir, "
            f"{_for_all_rows(config)}, for an adapter of all data."
        )
    return (
        f"Best on dev ({chosen_by}; {finished} seeds finished): {best_setting}; its best seed is "
        f"{best.training.seed}. {config.output.adapter_folder} holds that adapter, {table} every "
        "run."
    )


def _for_all_rows(config: RunConfig) -> str:
    """Returns which flags change to train on all rows, also of a table without a dev file."""
    is_own = (config.data.task_name or "").lower() == OWN
    return "without --folds" + (" and --do_eval, with --dev_share=0" if is_own else "")


def write_record(
    config: RunConfig,
    run_id: str,
    best: RunConfig,
    rows: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
) -> None:
    """Writes the sweep's `run.json`, with the rows of all runs."""
    folder = config.output.folder
    sweep = os.path.join(folder, RECORD) if config.sweeps.sweep else None
    content = {
        "command": command(),
        "flags": {**recorded_settings(config), "sweep": sweep},
        "versions": installed_versions(),
        "run": run_id,
        "best": os.path.basename(best.output.folder),
        "chosen_by": list(metrics),
        "runs": rows,
    }
    storage.write_text(os.path.join(folder, "run.json"), json.dumps(content, indent=2))


def apply_best(runner: TaskRunner, config: RunConfig, best: RunConfig, cache: RunCache) -> None:
    """Predicts and exports with the best run's adapter, in the folder of the sweep."""
    applied = best.changed(
        do_train=False,
        do_eval=False,
        do_predict=config.actions.do_predict,
        do_export=config.actions.do_export,
        export_dir=config.output.export_dir,
        output_dir=config.output.output_dir,
        adapter_dir=config.output.adapter_folder,
        report=False,
        **dict.fromkeys(best.values_of(("init_from", "init_task"))),
    )
    # The adapter has this very method: no warning that its settings have no effect.
    applied = applied.not_given(with_role(Role.METHOD))
    run_plan(runner, plan_run(runner, applied, cache))
