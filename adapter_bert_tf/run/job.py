"""A plan, carried out: build, train, evaluate, predict, write."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.task_model import TaskModel
from adapter_bert_tf.run import output_files, ownership
from adapter_bert_tf.run.lock import locked
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.store.versions import versions
from adapter_bert_tf.training.evaluation import Evaluation
from adapter_bert_tf.training.loop import train
from adapter_bert_tf.training.strategy import set_precision
from adapter_bert_tf.training.trained import count, report, select_trained


@dataclasses.dataclass
class Job:
    """A run under way.

    Args:
      plan: `Plan`.
      model: with the base's weights, and the saved adapter's if there is one.
      trained: dict from common name to variable.
      standardized: whether the model's scores are standardized still, in training.
      record: for `run.json`.
      found: what evaluation leaves to prediction.
    """

    plan: Plan
    model: TaskModel
    trained: dict[str, tf.Variable]
    standardized: bool = False
    record: dict[str, Any] = dataclasses.field(default_factory=dict)
    found: dict[str, Any] = dataclasses.field(default_factory=dict)


def run_plan(plan: Plan) -> dict[str, Any]:
    """One training, evaluation, prediction. Returns the content of its `run.json`."""
    if plan.actions.train and not plan.actions.overwrite and plan.folder.is_finished():
        out = plan.places.output_dir
        print(f"{out} holds the results of this very run. --overwrite repeats it.", flush=True)
        return output_files.read_record(os.path.join(out, "run.json"))
    with held(plan.places.output_dir, not plan.actions.dry_run and plan.writes):
        if plan.actions.train and not plan.actions.overwrite:
            plan.folder.check_same_run()  # Another process may have been here since.
            plan.folder.check_same_content()
        if plan.actions.train:
            plan.folder.check_adapter(plan.actions.overwrite)
        job = _build(plan)
        print(_report(job), flush=True)
        if plan.start:
            print(plan.start.report(job.model, plan.only_task), flush=True)
        if not plan.actions.dry_run:
            _carry_out(job)
        return _run_record(job)


def _report(job: Job) -> str:
    """What is trained, under a line that programs look for."""
    tuning = job.plan.method.tuning
    return report(job.model, job.trained, tuning, f"What --tuning={tuning.method} trains:")


@contextlib.contextmanager
def held(folder: str, writes: bool) -> Iterator[None]:
    """A context in which a folder is this process' own, if it writes there."""
    if not writes:
        yield
        return
    output_files.require_files(folder)
    with locked(folder):
        ownership.remove_leftovers(folder)
        yield


def _build(plan: Plan) -> Job:
    set_precision(plan.precision)
    tf_keras.utils.set_random_seed(plan.batches.seed)
    with plan.strategy.scope():
        model = _new_model(plan)
        return Job(plan, model, select_trained(model, plan.method.tuning))


def _new_model(plan: Plan) -> TaskModel:
    """The model with the base's weights, and the saved adapter's if there is one."""
    task = plan.only_task
    outputs = task.head.num_outputs(task.labels_in_order)
    model = task.head.new_model(plan.base.new_encoder(plan.method.parts), outputs)
    model.compile(jit_compile=plan.training.jit_compile)
    untouched = plan.base.assign(model.named_variables())
    if plan.saved:
        plan.saved.assign_to(model.named_variables(), plan.base.fingerprint())
    elif plan.start:
        plan.start.assign_to(model, plan.base.fingerprint(), task)
    elif untouched and not plan.actions.train:
        raise InputError(
            f"There is nothing trained to evaluate: no adapter in {plan.places.adapter_dir!r}, and "
            f"{plan.base.weights_path} does not hold {untouched[0]!r}. Add --do_train, or "
            "--adapter_dir."
        )
    return model


def _carry_out(job: Job) -> None:
    plan = job.plan
    if plan.actions.train:
        _train(job)
    if plan.kind.is_evaluated(plan):
        _evaluate(job)
    if plan.actions.predict:
        plan.kind.predict(job)
    if plan.actions.export and plan.writes:
        plan.kind.export(job)
    if plan.writes:
        output_files.write_run(plan.places.output_dir, _run_record(job), plan.actions.train)


def _train(job: Job) -> None:
    """Trains, and writes the adapter directory."""
    plan = job.plan
    if plan.actions.overwrite and plan.writes and not plan.folder.is_interrupted():
        ownership.clear(plan.places.output_dir, plan.kind.output_files(plan.tasks))
    if plan.writes:
        plan.folder.claim()
    plan.kind.begin_training(job)
    job.standardized = True
    progress = train(
        job.model,
        job.trained,
        lambda start, share: plan.kind.train_batches(plan, start, share),
        plan.training,
        _evaluation(job),
    )
    plan.kind.finish_training(job)
    job.standardized = False
    if progress.start:
        job.record["resumed_from_step"] = progress.start
    job.record |= {
        "train_seconds": progress.seconds,
        "train_cpu_seconds": progress.cpu_seconds,
        "examples_per_second": progress.examples_per_second,
        "global_step": progress.kept_step,
    }
    if plan.writes:
        plan.kind.save(job)


def _evaluation(job: Job) -> Evaluation | None:
    """What to evaluate during training, if anything."""
    plan, choice = job.plan, job.plan.choice
    if not choice.every and choice.keep == "last":
        return None

    def evaluate() -> dict[str, float]:
        job.found.clear()
        return plan.kind.evaluate(job)

    return Evaluation(
        every=choice.every,
        evaluate=evaluate,
        score=lambda results: plan.kind.score(plan.metrics, results),
        keep=choice.keep,
        patience=choice.patience,
    )


def _evaluate(job: Job) -> None:
    """Scores the development sets; writes `eval_results.txt`, and the result into the adapter."""
    plan = job.plan
    job.found.clear()
    results = plan.kind.evaluate(job)
    job.record["eval"] = results
    steps = plan.saved.config.get("global_step", 0) if plan.saved else 0
    if plan.writes:
        steps = job.record.get("global_step", steps)
        output_files.write_eval_results(plan.places.output_dir, results | {"global_step": steps})
        if plan.actions.train:
            plan.kind.save(job)


def _run_record(job: Job) -> dict[str, Any]:
    """The content of `run.json`: with `--config` it repeats the run."""
    plan = job.plan
    return {
        "command": output_files.command(),
        "flags": plan.flags,
        "learning_rate": plan.training.learning_rate,
        "versions": versions(),
        **plan.folder.content,
        "parameters": {
            "total": count(job.model.named_variables().values()),
            "trained": count(job.trained.values()),
        },
        "replicas": plan.strategy.num_replicas_in_sync,
        "peak_memory_mb": output_files.peak_memory_mb(),
    } | job.record
