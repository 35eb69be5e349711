"""Executes a plan: build, train, evaluate, predict, write."""

import contextlib
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import tf_keras

from adapter_bert_tf.adapters.languages.stack import StackConfig
from adapter_bert_tf.adapters.registry import of_kind
from adapter_bert_tf.errors import NotFound
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.output import provenance
from adapter_bert_tf.output.lock import remove_dead
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.output.run_dir import RECORD
from adapter_bert_tf.run.memory import explain_memory
from adapter_bert_tf.run.plan import Job, Plan
from adapter_bert_tf.run.result_files import has_report, write_eval_results, write_report
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.store.combining.stacking import with_below
from adapter_bert_tf.store.members import member_values
from adapter_bert_tf.training.device.kernels import kernels
from adapter_bert_tf.training.device.precision import PRECISIONS, precision_scope
from adapter_bert_tf.training.evaluation import Evaluation
from adapter_bert_tf.training.loop import train
from adapter_bert_tf.training.parameter_report import count, count_by_group
from adapter_bert_tf.training.progress import Progress
from adapter_bert_tf.training.tuning import select_trained

# What a record keeps when its finished training only gets more results; new scores replace old.
OF_TRAINING = (
    *("resumed_from_step", "train_seconds", "train_cpu_seconds", "examples_per_second"),
    *("later_runs", "eval", "test"),
)


def run_plan(runner: TaskRunner, plan: Plan) -> dict[str, Any]:
    """Trains, evaluates, predicts and exports as planned, and returns the content of `run.json`."""
    actions, folder = plan.actions, plan.folder
    resumes = actions.do_train and not actions.overwrite
    if resumes:
        out = plan.output.folder
        if folder.is_finished():
            print(f"{out} holds the results of this very run. --overwrite repeats it.", flush=True)
            _complete_finished(plan)
            if not actions.dry_run:
                runner.answer(plan, lambda: _build(runner, _with_saved_adapter(plan)).model)
            return read_record(folder.file(RECORD)) or {}
        if lost := folder.lost():
            print(f"Missing or changed, so made again: {', '.join(lost)}.", flush=True)
    writes = not actions.dry_run and plan.writes
    with folder.lock() if writes else contextlib.nullcontext():
        if resumes:
            folder.require_same_run()  # Another process may have written since the planning.
            folder.require_same_content()
        if actions.do_train:
            folder.require_own_adapter(actions.overwrite)
        with explain_memory(plan, "model"):
            job = _build(runner, plan)
        print(runner.report(job), flush=True)
        if plan.training.jit_compile:
            print("XLA compiles the steps, once for each length (--nojit_compile).", flush=True)
        if plan.initial_adapter:
            print(runner.report_start(plan.initial_adapter, plan, job.model), flush=True)
        if not actions.dry_run:
            _execute(runner, job)
        return _run_record(job)


def _build(runner: TaskRunner, plan: Plan) -> Job:
    tf_keras.utils.set_random_seed(plan.batches.seed)
    with plan.strategy.scope():
        model = new_model(runner, plan)
        return Job(plan, model, select_trained(model, plan.method.tuning))


def new_model(runner: TaskRunner, plan: Plan) -> EncoderModel:
    """Returns the model with the weights of the base, and of the saved adapter if there is one."""
    _, product_dtype = PRECISIONS[plan.precision]
    frozen = plan.method.tuning.frozen_layers
    with precision_scope(plan.precision):
        encoder = plan.base.new_encoder(plan.method.adapter, plan.dropout, product_dtype, frozen)
        model = runner.new_model(plan, encoder)
    model.compile(jit_compile=plan.training.jit_compile)
    untouched = plan.base.assign(model.named_variables())
    if plan.method.adapter and plan.members:
        variables = model.named_variables()
        for name, value in member_values(plan.method.adapter, plan.members).items():
            variables[name].assign(value)
    if plan.saved:
        plan.saved.assign_to(model.named_variables(), plan.base.fingerprint())
    elif plan.initial_adapter:
        runner.assign_start(plan.initial_adapter, plan, model)
    elif untouched and not plan.actions.do_train:
        raise NotFound(
            f"There is no adapter in {plan.output.adapter_folder!r} to evaluate, and "
            f"{plan.base.weights_path} does not hold {untouched[0]!r}. Add --do_train or "
            "--adapter_dir."
        )
    return model


def _execute(runner: TaskRunner, job: Job) -> None:
    plan = job.plan
    results = functools.partial(plan.folder.results, plan.actions.do_export)
    before = results() if plan.writes and not plan.actions.overwrite else {}
    if plan.actions.do_train:
        with explain_memory(plan, "train"):
            _train(runner, job)
    elif plan.writes:
        plan.folder.start_evaluation(_run_record(job))
    if runner.is_evaluated(plan.actions, plan.tasks):
        _evaluate(runner, job)
    if plan.actions.do_predict:
        with explain_memory(plan, "predict"):
            runner.predict(job)
    if plan.actions.do_export and plan.writes:
        with explain_memory(plan, "export"):
            runner.export(dataclasses.replace(job, model=_float32_model(runner, job)))
    if plan.writes:
        job.record["results"] = results()
        _finish(job, before)


def _float32_model(runner: TaskRunner, job: Job) -> EncoderModel:
    """Returns the model of a SavedModel: a machine without the run's units computes it slowly."""
    if job.plan.precision == "float32":
        return job.model
    with job.plan.strategy.scope():
        model = new_model(runner, dataclasses.replace(job.plan, precision="float32"))
    trained = job.model.named_variables()
    for name, variable in model.named_variables().items():
        variable.assign(trained[name])
    return model


def _finish(job: Job, before: dict[str, Any]) -> None:
    """Writes `run.json` and the report, and prints which results were replaced."""
    plan, now = job.plan, job.record["results"]
    for name, digest in before.items():
        if isinstance(digest, str) and now.get(name, digest) != digest:
            print(f"Replaced: {plan.folder.file(name)}", flush=True)
    plan.folder.write_record(_run_record(job), plan.actions.do_train)
    if plan.actions.do_train:
        print(printable(f"Adapter: {plan.output.adapter_folder}"), flush=True)
    if plan.output.report:
        write_report(plan.output.folder)


def _complete_finished(plan: Plan) -> None:
    """Removes the lock of a run that was killed at its end, and writes its missing report."""
    out = plan.output.folder
    if plan.actions.dry_run or not plan.writes:
        return
    remove_dead(out)
    if plan.output.report and not has_report(out):
        with plan.folder.lock():
            write_report(out)


def _with_saved_adapter(plan: Plan) -> Plan:
    """Returns the plan of a finished run with the adapter that it has saved."""
    folder, is_stack = plan.output.adapter_folder, of_kind(plan.method.adapter, StackConfig)
    saved = with_below(load_adapter(folder), plan.members[0] if is_stack else None, folder)
    return dataclasses.replace(plan, saved=saved)


def _train(runner: TaskRunner, job: Job) -> None:
    plan = job.plan
    if plan.actions.overwrite and plan.writes and not plan.folder.is_interrupted():
        plan.folder.clear()
    earlier = plan.folder.start_training() if plan.writes else {}
    runner.begin_training(job)
    job.standardized = True
    progress = train(
        job.model,
        job.trained,
        lambda start, shard: runner.train_batches(job.plan, start, shard),
        plan.training,
        _evaluation(runner, job),
    )
    runner.finish_training(job)
    job.standardized = False
    job.record |= _training_record(progress, earlier)
    if plan.writes:
        runner.save(job)


def _training_record(progress: Progress, earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the measurements for `run.json`; if all steps were done before, the earlier ones."""
    record: dict[str, Any] = {"global_step": progress.weights_step}
    if progress.skipped_steps is not None:
        record["skipped_steps"] = progress.skipped_steps
    if progress.step == progress.start and "train_seconds" in earlier:
        return record | {name: earlier[name] for name in OF_TRAINING if name in earlier}
    if progress.start:
        record["resumed_from_step"] = progress.start
    return record | {
        "train_seconds": progress.seconds,
        "train_cpu_seconds": progress.cpu_seconds,
        "examples_per_second": progress.examples_per_second,
    }


def _evaluation(runner: TaskRunner, job: Job) -> Evaluation | None:
    plan, settings = job.plan, job.plan.evaluation
    if not settings.eval_every_steps and settings.keep == "last" and plan.rungs is None:
        return None
    evaluated = _with_dev_subset(plan, settings.max_eval_examples)

    def evaluate() -> dict[str, float]:
        job.evaluated.clear()
        with explain_memory(plan, "evaluate"):
            return runner.evaluate(dataclasses.replace(job, plan=evaluated))

    return Evaluation(
        every=settings.eval_every_steps,
        evaluate=evaluate,
        score=lambda results: runner.score(plan.metrics, results),
        keep=settings.keep,
        patience=settings.patience,
        rungs=plan.rungs,
    )


def _with_dev_subset(plan: Plan, most: int | None) -> Plan:
    """The plan of evaluations during training, with at most `most` examples of each dev set.

    The subset does not depend on `--seed`, so trials are compared on the same examples.
    """
    if most is None:
        return plan
    return dataclasses.replace(
        plan, tasks=tuple(task.with_dev_subset(most, seed=0) for task in plan.tasks)
    )


def _evaluate(runner: TaskRunner, job: Job) -> None:
    """Scores the development sets, and writes the results into files and the adapter."""
    plan = job.plan
    job.evaluated.clear()
    with explain_memory(plan, "evaluate"):
        scores = runner.evaluate(job)
    job.record["eval"] = scores
    if not plan.writes:
        return
    saved_steps = plan.saved.config.get("global_step", 0) if plan.saved else 0
    steps = job.record.get("global_step", saved_steps)
    runner.write_details(job)
    write_eval_results(plan.output.folder, scores | {"global_step": steps})
    if plan.actions.do_train:
        runner.save(job)


def _run_record(job: Job) -> dict[str, Any]:
    """Returns the content of `run.json`, which repeats the run as `--config`."""
    plan = job.plan
    return {
        "command": provenance.command(),
        "flags": plan.settings,
        "learning_rate": plan.training.learning_rate,
        "versions": installed_versions(),
        **plan.folder.run.content,
        "parameters": {
            "total": count(job.model.named_variables().values()),
            "trained": count(job.trained.values()),
            "groups": count_by_group(job.model, job.trained),
        },
        "chosen_by": list(plan.metrics),
        "kernels": kernels(),
        "replicas": plan.strategy.num_replicas_in_sync,
        "compiled": plan.training.jit_compile,
        "peak_memory_mb": provenance.peak_memory_mb(),
    } | job.record
