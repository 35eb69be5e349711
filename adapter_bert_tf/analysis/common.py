"""What analyses of a saved adapter have in common: the plan of a run that evaluates it."""

from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import Any

import tensorflow as tf

from adapter_bert_tf.analysis import outputs
from adapter_bert_tf.analysis.class_set import ClassSet
from adapter_bert_tf.analysis.dev_set import DevSet
from adapter_bert_tf.analysis.question_set import QuestionSet
from adapter_bert_tf.config import table
from adapter_bert_tf.config.run_flags import RunFlags
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


def flags_for_analysis(parsed: Any, analysis: str, names: Collection[str]) -> RunFlags:
    """The flags of an analysis, which reads an adapter and its dev set, and does nothing else.

    Args:
      parsed: `absl.flags.FLAGS`, parsed.
      analysis: its name.
      names: of the files that it writes.

    Raises:
      InputError: when more is asked for, or there is no place for the files.
    """
    flags = RunFlags.of(parsed)
    require_one_task(flags, analysis)
    if others := [name for name in OTHER_ACTIONS if flags.values.get(name)]:
        raise InputError(
            f"`analysis {analysis}` reads an adapter and its dev set, and does nothing else. "
            f"Received: {', '.join(f'--{name}' for name in others)}. Leave that out."
        )
    outputs.require(flags.output_dir, names)
    paths.check(flags)
    return flags


def require_one_task(flags: RunFlags, analysis: str) -> None:
    """Raises `InputError` where `--task_name` says several."""
    named = getattr(flags, "task_name", None)
    if is_several(named):
        raise InputError(
            f"`analysis {analysis}` is of one task. Received: --task_name={named}. Name one, and "
            "of what was trained together the adapter of it, ADAPTER_DIR/tasks/NAME (methods that "
            "train the base too, such as pals, leave none)."
        )


def kind_of(parsed: Any) -> TaskRunner:
    """The kind of task whose flags these are: of classes and scores, or of questions."""
    return QuestionRunner() if "predict_file" in parsed else ClassificationRunner()


def dev_set(plan: Plan) -> DevSet:
    """The development set of a plan's task. Raises `InputError` if nothing can be scored by it."""
    return QuestionSet(plan) if isinstance(plan.only_task, SpanData) else ClassSet(plan)


def counted(plan: Plan, name: str) -> Iterator[dict[str, tf.Tensor]]:
    """Yields the inputs of the development set, each row once, and says how far it is.

    Args:
      plan: `Plan` of a run that evaluates.
      name: of the rows, for the line.
    """
    batches = list(plan.kind.evaluated(plan))
    progress = RowProgress(name, sum(rows for _, rows in batches))
    for inputs, rows in batches:
        yield {name: value[:rows] for name, value in inputs.items()}
        progress.add(rows)


def plan_analysis(kind: TaskRunner, flags: RunFlags) -> Plan:
    """The plan of a run that evaluates a saved adapter. Raises `InputError` if there is none."""
    plan = plan_run(kind, flags, RunCache())
    if plan.saved is None:
        raise InputError(
            f"There is no adapter in {plan.places.adapter_dir}. Name the adapter directory of a "
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
    """The flags that decide how the data is read, cut and answered; paths are in its digest."""
    values = decisive(plan.flags, table.PATHS)
    return {name: value for name, value in values.items() if name in table.DATA}
