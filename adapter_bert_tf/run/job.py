"""One run of a command, whatever the task: check, build, train, evaluate, predict, write."""

import abc
import contextlib
import dataclasses
import os

import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.kinds import PartsConfig
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.command.values import RunFlags
from adapter_bert_tf.run import outputs, ownership, preflight, settings
from adapter_bert_tf.run.lock import locked
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.store import SavedAdapter, save_adapter, schema
from adapter_bert_tf.store.versions import versions
from adapter_bert_tf.training import trained as what_is_trained
from adapter_bert_tf.training.loop import train
from adapter_bert_tf.training.strategy import is_chief, set_precision


class Kind(abc.ABC):
    """What differs between classification and question answering."""

    @abc.abstractmethod
    def main_metric(self, flags):
        """Key, in the results, of the metric to choose runs by; more is better."""

    @abc.abstractmethod
    def check(self, flags, saved):
        """Checks flags and the saved adapter. Raises `InputError`."""

    @abc.abstractmethod
    def read(self, flags, shared, saved):
        """The data: `count` of training examples, `adapter_config()` and `record()`, dicts."""

    @abc.abstractmethod
    def new_model(self, encoder, config, data):
        """The model, with random weights; `config` is the base's `BertConfig`."""

    @abc.abstractmethod
    def train_batches(self, job, start, share):
        """`tf.data.Dataset` of the batches from step `start` to `job.steps`, a `Share` of each."""

    @abc.abstractmethod
    def finish_training(self, job):
        """Does to the model what is to be done after training, if anything."""

    def is_evaluated(self, flags, data):
        """Whether the run has results."""
        return flags.do_eval

    @abc.abstractmethod
    def evaluate(self, job):
        """The results, a dict; writes nothing."""

    @abc.abstractmethod
    def predict(self, job):
        """Writes predictions, if the job writes."""

    @abc.abstractmethod
    def output_files(self, data):
        """Patterns of the files in `--output_dir` that are this task's own."""


@dataclasses.dataclass
class Job:
    """Everything that one run works with; made by `prepare`, which checks all of it."""

    flags: RunFlags
    kind: Kind
    data: object
    vocabulary: Vocabulary
    model: tf_keras.Model
    trained: dict
    content: dict  # What it is made of: `ownership.content`.
    adapter: PartsConfig | None
    tuning: what_is_trained.Tuning
    saved: SavedAdapter | None
    strategy: tf.distribute.Strategy
    steps: int
    learning_rate: float
    record: dict = dataclasses.field(default_factory=dict)  # For `run.json`.
    found: dict = dataclasses.field(default_factory=dict)  # What evaluation leaves to prediction.

    @property
    def writes(self):
        """Whether this process writes files; of several workers one does."""
        return is_chief(self.strategy)

    def batch_size(self, asked):
        """A batch size for evaluation that suits the replicas."""
        return preflight.whole_batches(asked, self.strategy)


def run_once(kind, flags, shared):
    """One training, evaluation, prediction. Returns the content of its `run.json`."""
    with prepared(kind, flags, shared) as job:
        if job is None:
            return outputs.read_json(os.path.join(flags.output_dir, "run.json"))
        print(what_is_trained.report(job.model, job.trained, job.tuning), flush=True)
        if flags.dry_run:
            return run_record(job)
        if flags.do_train:
            train_task(job)
        if kind.is_evaluated(flags, job.data):
            evaluate_task(job)
        if flags.do_predict:
            kind.predict(job)
        if flags.do_export:
            export(job)
        record = run_record(job)
        if job.writes:
            outputs.write_run(flags.output_dir, record, trained=flags.do_train)
        return record


def check_ahead(kind, flags, shared):
    """All checks of a run that need no model, for runs whose turn comes later."""
    settings.check(flags)
    kind.check(flags, None)
    shared.strategy(flags)
    base = shared.base(flags)
    settings.check_length(flags, base)
    _, tuning = settings.method(flags, base.config.num_layers)
    tuning.check_depth(base.config.num_layers)
    settings.training_steps(flags, kind.read(flags, shared, None).count)


def content(kind, flags, shared):
    """What a training with these flags is made of besides them: `ownership.content`."""
    base = shared.base(flags)
    adapter, _ = settings.method(flags, base.config.num_layers)
    return ownership.content(kind.read(flags, shared, None), base, adapter)


@contextlib.contextmanager
def prepared(kind, flags, shared):
    """Reads and checks all that the run needs, locks its folder, and builds the model.

    Yields:
      the `Job`, or None if the folder holds what it would do.
    """
    settings.check(flags)
    saved = None if flags.do_train else settings.find_saved(flags)
    kind.check(flags, saved)
    strategy = shared.strategy(flags)
    base = shared.base(flags)
    settings.check_length(flags, base)
    adapter, tuning = settings.method(flags, base.config.num_layers, saved)
    data = kind.read(flags, shared, saved)
    made_of = ownership.content(data, base, adapter)
    settings.warn_of_other_data(flags, made_of)
    ownership.check_same_content(flags, made_of)
    steps = settings.training_steps(flags, data.count)
    if flags.do_train and not flags.overwrite and ownership.is_finished(flags, lambda: made_of):
        print(
            f"{flags.output_dir} holds the results of this very run. --overwrite repeats it.",
            flush=True,
        )
        yield None
        return
    with held(flags, strategy):
        if flags.do_train and not flags.overwrite:  # Another process may have been here since.
            ownership.check_same_run(flags)
            ownership.check_same_content(flags, made_of)
        set_precision(flags.precision)
        tf_keras.utils.set_random_seed(flags.seed)
        with strategy.scope():
            model = build_model(kind, flags, base, adapter, data, saved)
            trained = what_is_trained.select_trained(model, tuning)
        yield Job(
            flags,
            kind,
            data,
            base.vocabulary,
            model,
            trained,
            made_of,
            adapter,
            tuning,
            saved,
            strategy,
            steps,
            settings.learning_rate(flags, tuning),
        )


@contextlib.contextmanager
def held(flags, strategy):
    """A context in which `--output_dir` is this process' own, if it writes there."""
    if flags.dry_run or not is_chief(strategy):
        yield
        return
    with locked(flags.output_dir):
        ownership.remove_leftovers(flags)
        yield


def build_model(kind, flags, base, adapter, data, saved):
    """The model with the base's weights, and the saved adapter's if there is one."""
    model = kind.new_model(base.new_encoder(adapter), base.config, data)
    model.compile(jit_compile=flags.jit_compile)
    untouched = base.assign(model.named_variables())
    if saved:
        saved.assign_to(model.named_variables(), base.fingerprint())
    elif not flags.do_train:
        settings.require_trained_checkpoint(flags, untouched)
    return model


def train_task(job):
    """Trains, and writes the adapter directory."""
    flags = job.flags
    if flags.overwrite and job.writes and not ownership.interrupted(flags, job.content):
        ownership.clear(flags.output_dir, job.kind.output_files(job.data))
    if job.writes:
        ownership.claim(flags, job.content)
    progress = train(
        job.model,
        job.trained,
        lambda start, share: job.kind.train_batches(job, start, share),
        settings.training(flags, job),
    )
    job.kind.finish_training(job)
    if progress.start:
        job.record["resumed_from_step"] = progress.start
    job.record |= {
        "train_seconds": progress.seconds,
        "train_cpu_seconds": progress.cpu_seconds,
        "examples_per_second": progress.examples_per_second,
        "global_step": job.steps,
    }
    save(job)


def evaluate_task(job):
    """Scores the development sets; writes `eval_results.txt`, and the result into the adapter."""
    results = job.kind.evaluate(job)
    job.record["eval"] = results
    steps = job.saved.config.get("global_step", 0) if job.saved else job.steps
    if job.writes:
        outputs.write_eval_results(job.flags.output_dir, results | {"global_step": steps})
    if job.flags.do_train:
        save(job)


def save(job):
    """Writes the adapter directory of a trained job, with its result if there is one."""
    if job.writes:
        kept = schema.kept_variables(job.model, job.tuning)
        save_adapter(settings.adapter_dir(job.flags), describe(job), kept, job.flags.adapter_dtype)


def describe(job):
    """What the adapter directory of a trained job says."""
    main, results = job.kind.main_metric(job.flags), job.record.get("eval")
    metric = (
        {"name": main.removeprefix("eval_"), "value": results[main], "split": "dev"}
        if results
        else None
    )
    return schema.describe(
        base=job.content["base"],
        tuning=job.tuning,
        adapter=job.adapter,
        metric=metric,
        global_step=job.steps,
        command=outputs.command(),
        **job.data.adapter_config(),
    )


def export(job):
    """Writes the SavedModel."""
    if not job.writes:
        return
    folder = settings.export_dir(job.flags)
    config = job.saved.config if job.saved else describe(job)
    export_task(folder, job.model, config, job.vocabulary)
    print(f"SavedModel: {folder}", flush=True)


def run_record(job):
    """The content of `run.json`: with `--config` it repeats the run."""
    total = what_is_trained.count(job.model.named_variables().values())
    return {
        "command": outputs.command(),
        "flags": job.flags.values,
        "learning_rate": job.learning_rate,
        "versions": versions(),
        **job.content,
        "parameters": {"total": total, "trained": what_is_trained.count(job.trained.values())},
        "replicas": job.strategy.num_replicas_in_sync,
        "peak_memory_mb": outputs.peak_memory_mb(),
    } | job.record
