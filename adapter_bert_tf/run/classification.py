"""The job of `run_classifier.py`: check, build, train, evaluate, predict, write."""

import dataclasses
import os

import numpy as np
import tensorflow as tf
import tf_keras
from absl import logging

from adapter_bert_tf.base import open_base
from adapter_bert_tf.data.batches import Features, eval_batches, tokenize, train_batches
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.data.tsv import Examples, read_split
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run import outputs, settings
from adapter_bert_tf.store import SavedAdapter, save_adapter
from adapter_bert_tf.tasks import Task, find_task, metrics
from adapter_bert_tf.tasks.classifier import Classifier
from adapter_bert_tf.training import trained as what_is_trained
from adapter_bert_tf.training.loop import train
from adapter_bert_tf.training.strategy import make_strategy, set_precision

UNKNOWN_SHARE = 0.05


@dataclasses.dataclass
class Job:
    """Everything that one run works with; made by `prepare`, which checks all of it."""

    flags: object
    task: Task
    examples: dict[str, Examples]
    features: dict[str, Features]
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
    """Runs the command. Raises `InputError` for what the user can mend, before training."""
    job = prepare(flags)
    print(what_is_trained.report(job.model, job.trained, job.tuning), flush=True)
    if flags.dry_run:
        return
    if flags.do_train:
        train_task(job)
    if flags.do_eval:
        evaluate_task(job)
    if flags.do_predict:
        predict_task(job)
    outputs.write_run(flags.output_dir, run_record(job), trained=flags.do_train)


def prepare(flags):
    """Reads and checks all that the run needs, and builds the model."""
    settings.check(flags)
    task = find_task(flags.task_name)
    saved = None if flags.do_train else settings.find_saved(flags)
    base = open_base(flags.base_model, flags.bert_config_file, flags.vocab_file,
                     flags.init_checkpoint, flags.do_lower_case)
    settings.check_length(flags, base)
    adapter, tuning = settings.method(flags, saved)
    examples = read_examples(flags, task)
    steps = settings.training_steps(flags, examples)
    if not flags.dry_run:
        settings.prepare_output(flags)
    strategy = make_strategy(settings.distribution(flags), flags.tpu_name, flags.tpu_zone,
                             flags.gcp_project)
    set_precision(flags.precision)
    tf_keras.utils.set_random_seed(flags.seed)
    with strategy.scope():
        model = build_model(flags, base, adapter, task, saved)
        trained = what_is_trained.select_trained(model, tuning)
    features = tokenize_all(examples, TextEncoder(base.vocabulary, flags.max_seq_length))
    return Job(flags, task, examples, features, base.fingerprint(), model, trained, tuning, saved,
               strategy, steps, settings.learning_rate(flags, tuning))


def build_model(flags, base, adapter, task, saved):
    """The classifier with the base's weights, and the saved adapter's if there is one."""
    model = Classifier(base.build_encoder(adapter), len(task.labels),
                       dropout=base.config.output_dropout)
    model.compile(jit_compile=flags.jit_compile)
    untouched = base.assign(model.named_variables())
    if saved:
        settings.check_task(saved, task)
        saved.assign_to(model.named_variables(), base.fingerprint())
    elif not flags.do_train:
        settings.require_trained_checkpoint(flags, untouched)
    return model


def read_examples(flags, task):
    """`Examples` of the splits that the run needs."""
    folder = flags.data_dir or task.folder
    if folder is None:
        raise InputError(f"--task_name={task.name} needs --data_dir, the folder with "
                         f"{', '.join(name for _, name in task.files)}.")
    wanted = {"train": flags.do_train, "dev": flags.do_eval, "test": flags.do_predict}
    return {split: read_split(task, folder, split) for split, needed in wanted.items() if needed}


def tokenize_all(examples, encoder):
    """`Features` of every split; warns where the vocabulary does not fit the text."""
    features = {}
    for split, split_examples in examples.items():
        features[split] = tokenize(split_examples, encoder)
        unknown = encoder.unknown_share(features[split].ids)
        if unknown > UNKNOWN_SHARE:
            logging.warning("%.0f%% of the word pieces of %s are [UNK]: does the vocabulary fit "
                            "the text?", 100 * unknown, split)
    return features


def train_task(job):
    """Trains, and writes the adapter directory."""
    flags = job.flags
    batches = train_batches(job.features["train"], flags.train_batch_size, job.steps, flags.seed,
                            flags.max_seq_length, settings.pad_to(flags))
    if flags.overwrite:
        settings.clear(flags.output_dir, job.task)
    settings.claim(flags)
    progress = train(job.model, job.trained, batches, settings.training(flags, job))
    job.record |= {"train_seconds": progress.seconds, "global_step": job.steps,
                   "examples_per_second": progress.examples_per_second}
    save(job)


def evaluate_task(job):
    """Scores the dev set; writes `eval_results.txt`, and the result into a fresh adapter."""
    probabilities = predict(job, "dev", job.flags.eval_batch_size)
    labels = job.examples["dev"].labels
    results = metrics.evaluate(job.task.metrics, labels, probabilities)
    if len(set(probabilities.argmax(-1).tolist())) == 1:
        logging.warning("Every dev example got the same label: nothing was learned yet.")
    job.record["eval"] = results
    steps = job.saved.config.get("global_step", 0) if job.saved else job.steps
    outputs.write_eval_results(job.flags.output_dir, results | {"global_step": steps})
    if job.flags.do_train:
        save(job)


def predict_task(job):
    """Predicts the test set; writes probabilities and the submission file, shows a few."""
    probabilities = predict(job, "test", job.flags.predict_batch_size)
    examples = job.examples["test"]
    outputs.write_predictions(job.flags.output_dir, job.task, examples.indices, probabilities)
    outputs.print_predictions(job.task, examples, probabilities)


def predict(job, split, batch_size):
    """Class probabilities, float32 `[examples, labels]`, in file order."""
    flags = job.flags
    batches, order = eval_batches(job.features[split], batch_size, flags.max_seq_length,
                                  settings.pad_to(flags))
    logits = job.model.predict(batches.map(lambda inputs, labels: inputs), verbose=0)
    probabilities = np.empty_like(logits)
    probabilities[order] = tf.nn.softmax(logits).numpy()
    return probabilities


def save(job):
    """Writes the adapter directory of a trained job, with its result if there is one."""
    main = job.task.metrics[0]
    results = job.record.get("eval")
    adapter = job.model.encoder.adapter_config
    save_adapter(settings.adapter_dir(job.flags), {
        "method": job.tuning.method, "tuning": dataclasses.asdict(job.tuning),
        "adapter": dataclasses.asdict(adapter) if adapter else None,
        "task": job.task.name, "labels": list(job.task.labels),
        "metric": {"name": main, "value": results[f"eval_{main}"], "split": "dev"}
        if results else None,
        "global_step": job.steps, "base": job.fingerprint, "versions": outputs.versions(),
        "command": outputs.command(),
    }, job.trained)


def run_record(job):
    """The content of `run.json`."""
    flags, folder = job.flags, job.flags.data_dir or job.task.folder
    total = what_is_trained.count(job.model.named_variables().values())
    return {
        "command": outputs.command(),
        "flags": settings.as_dict(flags),
        "learning_rate": job.learning_rate,
        "versions": outputs.versions(),
        "base": job.fingerprint,
        "data_sha256": {split: outputs.file_digest(os.path.join(folder, job.task.file_name(split)))
                        for split in job.examples},
        "examples": {split: len(examples) for split, examples in job.examples.items()},
        "parameters": {"total": total, "trained": what_is_trained.count(job.trained.values())},
        "replicas": job.strategy.num_replicas_in_sync,
        "peak_memory_mb": outputs.peak_memory_mb(),
    } | job.record
