"""Common code of analyses of a saved adapter: the plan of a run that evaluates it."""

from collections.abc import Collection, Iterator
from hashlib import sha256

import tensorflow as tf

from adapter_bert_tf.analysis import outputs
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import load
from adapter_bert_tf.config.settings import DATA, PATHS
from adapter_bert_tf.config.task_list import is_several
from adapter_bert_tf.errors import Conflict, NotFound
from adapter_bert_tf.output.records import digest
from adapter_bert_tf.run.checks import paths
from adapter_bert_tf.run.fingerprint import decisive
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.planning import plan_run
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.store.contents import name_of
from adapter_bert_tf.training.progress import RowProgress

OTHER_ACTIONS = ("do_train", "do_predict", "do_export", "overwrite")


def check_analysis(config: RunConfig, analysis: str, names: Collection[str]) -> None:
    """Raises `InputError` for another action, or a folder that cannot hold files of these names."""
    require_one_task(config, analysis)
    if others := [name for name in OTHER_ACTIONS if config.value(name)]:
        raise Conflict(
            f"`analyze {analysis}` reads an adapter and its dev set, and does nothing else. "
            f"Received: {', '.join(f'--{name}' for name in others)}. Leave it out."
        )
    outputs.require_writable(config.output.folder, names)
    paths.check(config)


def require_one_task(config: RunConfig, analysis: str) -> None:
    """Raises `InputError` if `--task_name` lists several tasks."""
    if is_several(config.data.task_name):
        raise Conflict(
            f"`analyze {analysis}` needs data of one task. Received: --task_name="
            f"{config.data.task_name}. Give one task, and its adapter: ADAPTER_DIR/tasks/NAME for "
            "tasks that were trained together (methods that train the base, such as pals, have "
            "none)."
        )


def runner_for(config: RunConfig) -> TaskRunner:
    """The task runner of the settings' command."""
    runner: TaskRunner = load(config.command.runner)()
    return runner


def dev_inputs(runner: TaskRunner, plan: Plan, name: str) -> Iterator[dict[str, tf.Tensor]]:
    """Yields the inputs of the development set, each row once, and prints progress as `name`."""
    batches = list(runner.dev_batches(plan))
    progress = RowProgress(name, sum(rows for _, rows in batches))
    for inputs, rows in batches:
        yield {name: value[:rows] for name, value in inputs.items()}
        progress.add(rows)


def plan_analysis(runner: TaskRunner, config: RunConfig, cache: RunCache | None = None) -> Plan:
    """The plan of a run that evaluates a saved adapter. Raises `InputError` without one.

    Plans with one `cache` share the base and the data.
    """
    plan = plan_run(runner, config, cache or RunCache())
    if plan.saved is None:
        raise NotFound(
            f"There is no adapter in {plan.output.adapter_folder}. Give the adapter directory of a "
            "run: --adapter_dir=..."
        )
    return plan


def task_title(plan: Plan) -> str:
    """The name of the plan's task in tables and pictures; for an own table its adapter's."""
    return name_of(plan.only_task.adapter_config())


def identity(plan: Plan) -> str:
    """Digest of the adapter, its base, its data and the settings that determine the results."""
    saved = plan.saved
    assert saved is not None
    weights = {name: sha256(value.tobytes()).hexdigest() for name, value in saved.weights.items()}
    # The digests of the data stand for its paths.
    values = decisive(plan.settings, PATHS)
    settings = {name: value for name, value in values.items() if name in DATA}
    results_depend_on = [weights, saved.config["base"], plan.only_task.record(), plan.precision]
    return digest([*results_depend_on, settings, list(plan.metrics)])
