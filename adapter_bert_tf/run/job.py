"""A plan, carried out: build, train, evaluate, predict, write."""

import contextlib
import dataclasses
import functools
from typing import Any

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.output import provenance
from adapter_bert_tf.output.lock import remove_dead
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.output.run_dir import RECORD
from adapter_bert_tf.run import report_page
from adapter_bert_tf.run.metric_files import write_eval_results
from adapter_bert_tf.run.plan import Plan
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store.members import stack_members
from adapter_bert_tf.store.versions import installed_versions
from adapter_bert_tf.training.evaluation import Evaluation
from adapter_bert_tf.training.loop import train
from adapter_bert_tf.training.parameter_report import count, count_by_group
from adapter_bert_tf.training.strategy import PRECISIONS, set_precision
from adapter_bert_tf.training.tuning import select_trained


@dataclasses.dataclass
class Job:
    """A run under way.

    Args:
      plan: `Plan`.
      model: with the base's weights, and the saved adapter's if there is one.
      trained: dict from common name to variable.
      standardized: whether the model's scores are standardized still, in training.
      record: for `run.json`.
      found: what evaluation leaves to prediction, and to what is written of it.
    """

    plan: Plan
    model: EncoderModel
    trained: dict[str, tf.Variable]
    standardized: bool = False
    record: dict[str, Any] = dataclasses.field(default_factory=dict)
    found: dict[str, Any] = dataclasses.field(default_factory=dict)


def run_plan(plan: Plan) -> dict[str, Any]:
    """One training, evaluation, prediction. Returns the content of its `run.json`."""
    if plan.actions.train and not plan.actions.overwrite:
        out = plan.places.output_dir
        if plan.folder.is_finished():
            print(f"{out} holds the results of this very run. --overwrite repeats it.", flush=True)
            _clean_finished(plan)
            return read_record(plan.folder.file(RECORD)) or {}
        if lost := plan.folder.lost():
            print(f"Not as this run left it, so made again: {', '.join(lost)}.", flush=True)
    writes = not plan.actions.dry_run and plan.writes
    with plan.folder.lock() if writes else contextlib.nullcontext():
        if plan.actions.train and not plan.actions.overwrite:
            plan.folder.require_same_run()  # Another process may have been here since.
            plan.folder.require_same_content()
        if plan.actions.train:
            plan.folder.require_own_adapter(plan.actions.overwrite)
        job = _build(plan)
        print(plan.kind.report(job), flush=True)
        if plan.start:
            print(plan.kind.report_start(plan, job.model), flush=True)
        if not plan.actions.dry_run:
            _carry_out(job)
        return _run_record(job)


def _build(plan: Plan) -> Job:
    set_precision(plan.precision)
    tf_keras.utils.set_random_seed(plan.batches.seed)
    with plan.strategy.scope():
        model = new_model(plan)
        return Job(plan, model, select_trained(model, plan.method.tuning))


def new_model(plan: Plan) -> EncoderModel:
    """The model with the base's weights, and the saved adapter's if there is one."""
    _, product_dtype = PRECISIONS[plan.precision]
    frozen = plan.method.tuning.frozen_layers
    encoder = plan.base.new_encoder(plan.method.parts, plan.dropout, product_dtype, frozen)
    model = plan.kind.new_model(plan, encoder)
    model.compile(jit_compile=plan.training.jit_compile)
    untouched = plan.base.assign(model.named_variables())
    if plan.members:
        _assign_members(model.named_variables(), plan)
    if plan.saved:
        plan.saved.assign_to(model.named_variables(), plan.base.fingerprint())
    elif plan.start:
        plan.kind.assign_start(plan, model)
    elif untouched and not plan.actions.train:
        raise InputError(
            f"There is nothing trained to evaluate: no adapter in {plan.places.adapter_dir!r}, and "
            f"{plan.base.weights_path} does not hold {untouched[0]!r}. Add --do_train, or "
            "--adapter_dir."
        )
    return model


def _assign_members(variables: dict[str, tf.Variable], plan: Plan) -> None:
    assert isinstance(plan.method.parts, FusionConfig)
    for name, value in stack_members(plan.method.parts, plan.members).items():
        variables[name].assign(value)


def _carry_out(job: Job) -> None:
    plan = job.plan
    results = functools.partial(plan.folder.results, plan.actions.export)
    before = results() if plan.writes and not plan.actions.overwrite else {}
    if plan.actions.train:
        _train(job)
    elif plan.writes:
        plan.folder.start_evaluation(_run_record(job))
    if plan.kind.is_evaluated(plan):
        _evaluate(job)
    if plan.actions.predict:
        plan.kind.predict(job)
    if plan.actions.export and plan.writes:
        plan.kind.export(job)
    if plan.writes:
        job.record["results"] = now = results()
        for name, digest in before.items():
            if isinstance(digest, str) and now.get(name, digest) != digest:
                print(f"Replaced: {plan.folder.file(name)}", flush=True)
        plan.folder.write_record(_run_record(job), plan.actions.train)
        if plan.actions.train:
            print(printable(f"Adapter: {plan.places.adapter_dir}"), flush=True)
        if plan.actions.report:
            report_page.write(plan.places.output_dir)


def _clean_finished(plan: Plan) -> None:
    """What a finished run that was killed at its very end owes: its page, and its lock's removal.

    The page may also be missing as it was not asked for.
    """
    out = plan.places.output_dir
    if plan.actions.dry_run or not plan.writes:
        return
    remove_dead(out)
    if plan.actions.report and not report_page.is_there(out):
        with plan.folder.lock():
            report_page.write(out)


def _train(job: Job) -> None:
    """Trains, and writes the adapter directory."""
    plan = job.plan
    if plan.actions.overwrite and plan.writes and not plan.folder.is_interrupted():
        plan.folder.clear()
    if plan.writes:
        plan.folder.start_training()
    plan.kind.begin_training(job)
    job.standardized = True
    progress = train(
        job.model,
        job.trained,
        lambda start, share: plan.kind.train_batches(job.plan, start, share),
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
        "global_step": progress.weights_step,
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
    scores = plan.kind.evaluate(job)
    job.record["eval"] = scores
    steps = plan.saved.config.get("global_step", 0) if plan.saved else 0
    if plan.writes:
        steps = job.record.get("global_step", steps)
        plan.kind.write_details(job)
        write_eval_results(plan.places.output_dir, scores | {"global_step": steps})
        if plan.actions.train:
            plan.kind.save(job)


def _run_record(job: Job) -> dict[str, Any]:
    """The content of `run.json`: with `--config` it repeats the run."""
    plan = job.plan
    return {
        "command": provenance.command(),
        "flags": plan.flags,
        "learning_rate": plan.training.learning_rate,
        "versions": installed_versions(),
        **plan.folder.run.content,
        "parameters": {
            "total": count(job.model.named_variables().values()),
            "trained": count(job.trained.values()),
            "groups": count_by_group(job.model, job.trained),
        },
        "chosen_by": list(plan.metrics),
        "replicas": plan.strategy.num_replicas_in_sync,
        "peak_memory_mb": provenance.peak_memory_mb(),
    } | job.record
