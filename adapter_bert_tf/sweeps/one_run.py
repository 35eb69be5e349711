"""One run of a sweep: planned again at its turn, resumed, and reduced to its row."""

import dataclasses

import tf_keras

from adapter_bert_tf.config.messages import spell_for_command
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import Diverged, Overflowed, Pruned
from adapter_bert_tf.run.execute import run_plan
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.planning import plan_run
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.sweeps.results import Row, row_of
from adapter_bert_tf.sweeps.search.halving import row_of_stopped, rungs_of


def plan_again(
    runner: TaskRunner, config: RunConfig, cache: RunCache, overwrite: bool = True
) -> Plan:
    """Plans a run whose folder belongs to the sweep. Raises `InputError`."""
    return plan_run(runner, config.changed(overwrite=overwrite), cache)


def execute(
    runner: TaskRunner, config: RunConfig, cache: RunCache, halving: str | None = None
) -> Row:
    """Executes a run, or resumes it; returns its row. Raises `InputError`.

    Args:
      runner, config, cache: of the run.
      halving: the sweep whose weak runs stop early, by its digest; None to stop none.
    """
    plan = plan_again(runner, config, cache)
    if plan.folder.can_resume():
        plan = plan_again(runner, config, cache, overwrite=False)
    if halving:
        plan = dataclasses.replace(plan, rungs=rungs_of(plan, halving))
    tf_keras.backend.clear_session()
    try:
        record = run_plan(runner, plan)
    except Pruned as stop:
        print(stop, flush=True)
        return row_of_stopped(stop.step, stop.score)
    except (Diverged, Overflowed) as error:  # The learning rate of this run is too high.
        print(spell_for_command(error), flush=True)
        return {"status": "diverged", "results": {}}
    return {"results": {}} if config.actions.dry_run else row_of(record)
