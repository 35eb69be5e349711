"""What analyses of a saved adapter have in common: the plan of a run that evaluates it."""

from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import Any

import tensorflow as tf

from adapter_bert_tf.analysis import outputs
from adapter_bert_tf.analysis.class_set import ClassSet
from adapter_bert_tf.analysis.dev_set import DevSet
from adapter_bert_tf.analysis.question_set import QuestionSet
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.settings import DATA, PATHS
from adapter_bert_tf.config.task_list import is_several
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.records import digest
from adapter_bert_tf.run.checks import paths
from adapter_bert_tf.run.fingerprint import decisive
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.run.planning import plan_run
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.runners.classification.runner import ClassificationRunner
from adapter_bert_tf.runners.questions.runner import QuestionRunner
from adapter_bert_tf.runners.questions.task_data import SpanData
from adapter_bert_tf.training.progress import RowProgress

OTHER_ACTIONS = ("do_train", "do_predict", "do_export", "overwrite")
PICTURES = ("csv", "png", "svg")


def check_analysis(config: RunConfig, analysis: str, names: Collection[str]) -> None:
    """Checks the settings of an analysis, which reads an adapter and its dev set.

    Args:
      config: of the command.
      analysis: its name.
      names: of the files that it writes.

    Raises:
      InputError: when another action is given, or there is no place for the files.
    """
    require_one_task(config, analysis)
    if others := [name for name in OTHER_ACTIONS if config.value(name)]:
        raise InputError(
            f"`analysis {analysis}` reads an adapter and its dev set, and does nothing else. "
            f"Received: {', '.join(f'--{name}' for name in others)}. Leave that out."
        )
    outputs.require(config.output.folder, names)
    paths.check(config)


def require_one_task(config: RunConfig, analysis: str) -> None:
    """Raises `InputError` where `--task_name` lists several tasks."""
    if is_several(config.data.task_name):
        raise InputError(
            f"`analysis {analysis}` works with one task. Received: --task_name="
            f"{config.data.task_name}. Name one, and of what was trained together the adapter of "
            "it, ADAPTER_DIR/tasks/NAME (methods that train the base too, such as pals, leave "
            "none)."
        )


def runner_of(config: RunConfig) -> TaskRunner:
    """The task runner of a command: of questions, or of classes and scores."""
    return QuestionRunner() if config.answers_questions else ClassificationRunner()


def dev_set(plan: Plan) -> DevSet:
    """The development set of a plan's task. Raises `InputError` if it cannot be scored."""
    return QuestionSet(plan) if isinstance(plan.only_task, SpanData) else ClassSet(plan)


def counted(runner: TaskRunner, plan: Plan, name: str) -> Iterator[dict[str, tf.Tensor]]:
    """Yields the inputs of the development set, each row once, and prints progress.

    Args:
      runner: of the task's type.
      plan: `Plan` of a run that evaluates.
      name: of the rows, for the line.
    """
    batches = list(runner.dev_batches(plan))
    progress = RowProgress(name, sum(rows for _, rows in batches))
    for inputs, rows in batches:
        yield {name: value[:rows] for name, value in inputs.items()}
        progress.add(rows)


def plan_analysis(runner: TaskRunner, config: RunConfig) -> Plan:
    """The plan of a run that evaluates a saved adapter. Raises `InputError` if there is none."""
    plan = plan_run(runner, config, RunCache())
    if plan.saved is None:
        raise InputError(
            f"There is no adapter in {plan.output.adapter_folder}. Name the adapter directory of a "
            "run: --adapter_dir=..."
        )
    return plan


def pictures_of(name: str) -> list[str]:
    """Names of the files of an analysis: a table and two pictures."""
    return [f"{name}.{kind}" for kind in PICTURES]


def identity(plan: Plan) -> str:
    """Digest of what decides what an analysis finds: the adapter, its base, data and settings."""
    saved = plan.saved
    assert saved is not None
    weights = {name: sha256(value.tobytes()).hexdigest() for name, value in saved.weights.items()}
    found = [weights, saved.config["base"], plan.only_task.record(), plan.precision]
    return digest([*found, _settings(plan), list(plan.metrics)])


def _settings(plan: Plan) -> dict[str, Any]:
    """The settings that decide how the data is read, cut and answered; paths are in its digest."""
    values = decisive(plan.settings, PATHS)
    return {name: value for name, value in values.items() if name in DATA}
