"""The job of `run_classifier.py`: check, build, train, evaluate, predict, write."""

import dataclasses

import numpy as np
import tensorflow as tf
import tf_keras
from absl import logging

from adapter_bert_tf.data.batches import eval_batches, train_batches
from adapter_bert_tf.run import inputs, outputs, settings, sweep
from adapter_bert_tf.run.inputs import Inputs
from adapter_bert_tf.run.values import RunFlags
from adapter_bert_tf.store import SavedAdapter, save_adapter
from adapter_bert_tf.tasks import Task, metrics, role
from adapter_bert_tf.tasks.classifier import Classifier
from adapter_bert_tf.training import trained as what_is_trained
from adapter_bert_tf.training.loop import train
from adapter_bert_tf.training.strategy import make_strategy, set_precision


@dataclasses.dataclass
class Job:
    """Everything that one run works with; made by `prepare`, which checks all of it."""

    flags: RunFlags
    task: Task
    inputs: Inputs
    fingerprint: dict
    model: Classifier
    trained: dict
    tuning: what_is_trained.Tuning
    saved: SavedAdapter | None
    strategy: tf.distribute.Strategy
    steps: int
    learning_rate: float
    record: dict = dataclasses.field(default_factory=dict)


def run(flags):
    """Runs the command. Raises `InputError` for what the user can mend, before training.

    Args:
      flags: `absl.flags.FLAGS`, parsed.
    """
    sweep.run(RunFlags.of(flags), run_once, inputs.task_of)


def run_once(flags, shared):
    """One run: one training, evaluation, prediction. Returns the content of its `run.json`."""
    job = prepare(flags, shared)
    print(what_is_trained.report(job.model, job.trained, job.tuning), flush=True)
    if flags.dry_run:
        return run_record(job)
    if flags.do_train:
        train_task(job)
    if flags.do_eval:
        evaluate_task(job)
    if flags.do_predict:
        predict_task(job)
    record = run_record(job)
    outputs.write_run(flags.output_dir, record, trained=flags.do_train)
    return record


def prepare(flags, shared):
    """Reads and checks all that the run needs, and builds the model."""
    settings.check(flags)
    task = inputs.task_of(flags)
    saved = None if flags.do_train else settings.find_saved(flags)
    if saved:
        settings.check_task(saved, task)
    base = shared.base(flags)
    settings.check_length(flags, base)
    adapter, tuning = settings.method(flags, saved)
    data = shared.inputs(flags, task, saved)
    steps = settings.training_steps(flags, len(data.examples.get("train", [])))
    if not flags.dry_run:
        settings.prepare_output(flags)
    strategy = make_strategy(settings.distribution(flags), flags.tpu_name, flags.tpu_zone,
                             flags.gcp_project)
    set_precision(flags.precision)
    tf_keras.utils.set_random_seed(flags.seed)
    with strategy.scope():
        model = build_model(flags, base, adapter, data.task, saved)
        trained = what_is_trained.select_trained(model, tuning)
    return Job(flags, data.task, data, base.fingerprint(), model, trained, tuning, saved, strategy,
               steps, settings.learning_rate(flags, tuning))


def build_model(flags, base, adapter, task, saved):
    """The classifier with the base's weights, and the saved adapter's if there is one."""
    model = Classifier(base.new_encoder(adapter), task.num_outputs,
                       dropout=base.config.output_dropout, regression=task.regression)
    model.compile(jit_compile=flags.jit_compile)
    untouched = base.assign(model.named_variables())
    if saved:
        saved.assign_to(model.named_variables(), base.fingerprint())
    elif not flags.do_train:
        settings.require_trained_checkpoint(flags, untouched)
    return model


def train_task(job):
    """Trains, and writes the adapter directory."""
    flags, features = job.flags, job.inputs.features["train"]
    if job.task.regression:
        features, mean, deviation = inputs.standardize(features)
    batches = train_batches(features, flags.train_batch_size, job.steps, flags.seed,
                            flags.max_seq_length, settings.pad_to(flags))
    if flags.overwrite:
        settings.clear(flags.output_dir, job.task)
    settings.claim(flags)
    progress = train(job.model, job.trained, batches, settings.training(flags, job))
    if job.task.regression:
        job.model.rescale_head(mean, deviation)
    job.record |= {"train_seconds": progress.seconds, "train_cpu_seconds": progress.cpu_seconds,
                   "examples_per_second": progress.examples_per_second, "global_step": job.steps}
    save(job)


def evaluate_task(job):
    """Scores the development sets; writes `eval_results.txt`, and the result into the adapter."""
    results = score(job, predict_all(job, "dev", job.flags.eval_batch_size), "eval")
    job.record["eval"] = results
    steps = job.saved.config.get("global_step", 0) if job.saved else job.steps
    outputs.write_eval_results(job.flags.output_dir, results | {"global_step": steps})
    if job.flags.do_train:
        save(job)


def predict_task(job):
    """Predicts the test sets; writes probabilities and submission files, shows a few rows.

    Where the test labels are known, the metrics go to `test_metrics.txt`.
    """
    folder, task = job.flags.output_dir, job.task
    predictions = predict_all(job, "test", job.flags.predict_batch_size)
    for split, predicted in predictions.items():
        examples = job.inputs.examples[split]
        outputs.write_predictions(folder, task, split, examples.indices, predicted)
        outputs.print_predictions(task, examples, predicted)
    results = score(job, predictions, "test")
    if results:
        job.record["test"] = results
        outputs.write_metrics(folder, "test_metrics.txt", "Test results", results)


def score(job, predictions, prefix):
    """Metrics of all splits with labels: `eval_accuracy`, `eval_mismatched_accuracy`."""
    results = {}
    for split, predicted in predictions.items():
        if metrics.is_constant(predicted):
            logging.warning("Every example of %s got the same prediction: nothing was learned yet.",
                            split)
        if job.inputs.labels[split] is not None:
            scores = metrics.evaluate(job.task.metrics, job.inputs.labels[split], predicted)
            name = "_".join([prefix, *split.split("_")[1:]])
            results |= {f"{name}_{metric}": value for metric, value in scores.items()}
    return results


def predict_all(job, of_role, batch_size):
    """Dict from each split with a role to its predictions."""
    return {split: predict(job, split, batch_size) for split in job.inputs.features
            if role(split) == of_role}


def predict(job, split, batch_size):
    """Class probabilities, float32 `[examples, labels]`, or scores `[examples]`, in file order."""
    flags = job.flags
    batches, order = eval_batches(job.inputs.features[split], batch_size, flags.max_seq_length,
                                  settings.pad_to(flags))
    rows = job.model.predict(batches.map(lambda features, labels: features), verbose=0)
    if not job.task.regression:
        rows = tf.nn.softmax(rows).numpy()
    in_order = np.empty_like(rows)
    in_order[order] = rows
    return in_order[:, 0] if job.task.regression else in_order


def save(job):
    """Writes the adapter directory of a trained job, with its result if there is one."""
    main = job.task.metrics[0]
    results = job.record.get("eval")
    adapter = job.model.encoder.adapter_config
    save_adapter(settings.adapter_dir(job.flags), {
        "method": job.tuning.method, "tuning": dataclasses.asdict(job.tuning),
        "adapter": dataclasses.asdict(adapter) if adapter else None,
        "task": job.task.name, "labels": list(job.task.labels or ()),
        "regression": job.task.regression,
        "metric": {"name": main, "value": results[f"eval_{main}"], "split": "dev"}
        if results else None,
        "global_step": job.steps, "base": job.fingerprint, "versions": outputs.versions(),
        "command": outputs.command(),
    }, job.trained)


def run_record(job):
    """The content of `run.json`: with `--config` it repeats the run."""
    adapter = job.model.encoder.adapter_config
    total = what_is_trained.count(job.model.named_variables().values())
    return {
        "command": outputs.command(),
        "flags": job.flags.values,
        "learning_rate": job.learning_rate,
        "adapter": dataclasses.asdict(adapter) if adapter else None,
        "versions": outputs.versions(),
        "base": job.fingerprint,
        "labels": list(job.task.labels or ()),
        "data_sha256": {split: part.digest() for split, part in job.inputs.examples.items()},
        "examples": {split: len(part) for split, part in job.inputs.examples.items()},
        "share_cut": {split: float(part.cut.mean()) for split, part in job.inputs.features.items()},
        "parameters": {"total": total, "trained": what_is_trained.count(job.trained.values())},
        "replicas": job.strategy.num_replicas_in_sync,
        "peak_memory_mb": outputs.peak_memory_mb(),
    } | job.record
