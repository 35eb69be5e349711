"""The training loop: tf_keras' `fit`, which can be stopped at any step and goes on from there."""

import dataclasses
import math
from collections.abc import Callable

import tensorflow as tf
import tf_keras
from absl import logging

from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.errors import Diverged, InputError, WorkerLost
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.training.accumulation import train_step_of
from adapter_bert_tf.training.best import Variables
from adapter_bert_tf.training.checkpoints import Checkpoints, SaveCheckpoints
from adapter_bert_tf.training.dropout import Part, seed_dropout
from adapter_bert_tf.training.evaluation import Evaluation, Evaluations
from adapter_bert_tf.training.interruption import TellChief, watching
from adapter_bert_tf.training.optimizer import OPTIMIZERS, BertAdam, Schedule
from adapter_bert_tf.training.progress import Progress
from adapter_bert_tf.training.strategy import distribute, io_device, is_chief, one_of_several

Batches = Callable[[int, HostShard], tf.data.Dataset]
# What collective operations say when another worker is gone.
LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
)


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    Args:
      steps: number of optimizer steps.
      batch_size: examples a step, over all replicas.
      learning_rate: the peak.
      warmup_proportion: share of the steps that warm up.
      optimizer: a key of `OPTIMIZERS`.
      jit_compile: whether XLA compiles the step.
      steps_per_loop: steps in one call of the compiled loop.
      save_every: steps between checkpoints.
      output_dir: folder for checkpoints and progress; None for neither.
      seed: of dropout.
      weight_decay: of the optimizer.
      loss: to train with; None for the model's own.
      parts: that a batch is computed in, one after the other; they must divide it.
    """

    steps: int
    batch_size: int
    learning_rate: float
    warmup_proportion: float = 0.1
    optimizer: str = "adamw"
    jit_compile: bool = False
    steps_per_loop: int = 1
    save_every: int = 1000
    output_dir: str | None = None
    seed: int = 0
    weight_decay: float = 0.01
    loss: Loss | None = None
    parts: int = 1


def train(
    model: tf_keras.Model,
    trained: Variables,
    batches: Batches,
    settings: TrainingSettings,
    evaluation: Evaluation | None = None,
) -> Progress:
    """Fits `model`; takes an interrupted run of the same folder up again.

    The weights after a step depend on the start, the seed and the data, not on where the run was
    interrupted before: batches and dropout are functions of the step.

    Args:
      model: compiled by this function; its `trainable_variables` are those of `trained`.
      trained: dict from common name to variable.
      batches: function of a step and a `Share` that returns a `tf.data.Dataset` of the batches
        from that step to the last of `settings.steps`.
      settings: `TrainingSettings`.
      evaluation: `Evaluation`: what to evaluate meanwhile; None for nothing.

    Returns:
      the `Progress`, with the seconds and examples/s of the run, its last step, and whose weights
      the model has.

    Raises:
      Diverged: when the loss is not finite.
      InputError: when no checkpoint to resume from can be read.
      Interrupted: when the process was asked to stop; a checkpoint holds all steps done.
      WorkerLost: when another worker is gone.
    """
    strategy = model.distribute_strategy
    with strategy.scope():
        schedule, optimizer = compile_model(model, capped(settings, evaluation))
    checkpoints, start = take_up(strategy, settings, trained, optimizer)
    writes = settings.output_dir if is_chief(strategy) else None
    progress = Progress(settings.steps, settings.batch_size, schedule, writes, start)
    evaluations = None
    if evaluation:
        folder = checkpoints.folder if checkpoints else None
        evaluations = Evaluations(evaluation, trained, progress, folder, is_chief(strategy))
    if start < settings.steps and not (evaluations and evaluations.is_over):
        warn_if_nothing_moves(settings, schedule)
        go_on(model, batches, settings, progress, evaluations, checkpoints)
        check_all_done(settings, progress, evaluations)
    if evaluations:
        with strategy.scope():
            evaluations.finish()
    return progress


def capped(settings: TrainingSettings, evaluation: Evaluation | None) -> TrainingSettings:
    """The settings, with no call of the compiled loop so long that it jumps over an evaluation."""
    if evaluation is None:
        return settings
    longest = evaluation.longest_call(settings.steps_per_loop)
    return dataclasses.replace(settings, steps_per_loop=longest)


def take_up(
    strategy: tf.distribute.Strategy,
    settings: TrainingSettings,
    trained: Variables,
    optimizer: BertAdam,
) -> tuple[Checkpoints | None, int]:
    """Restores the latest checkpoint; (`Checkpoints`, its step), or (None, 0) without a folder."""
    mean_over_workers(strategy, 0)  # The first one may be clearing the folder still.
    checkpoints = None
    if settings.output_dir:
        folder = f"{settings.output_dir}/checkpoints"
        checkpoints = Checkpoints(folder, trained, optimizer, io_device(strategy))
    start = checkpoints.restore() if checkpoints else 0
    check_same_start(strategy, start)
    return checkpoints, start


def warn_if_nothing_moves(settings: TrainingSettings, schedule: Schedule) -> None:
    """Warns of a training whose learning rate is 0 at every step, as that of a single step is."""
    if float(schedule(0)) > 0:  # The first rate is 0 only where all are.
        return
    logging.warning(
        "This training changes nothing: the learning rate falls to 0 at the last step, and it has "
        "%d step. Give it more: more epochs, or a smaller batch than %d.",
        settings.steps,
        settings.batch_size,
    )


def go_on(
    model: tf_keras.Model,
    batches: Batches,
    settings: TrainingSettings,
    progress: Progress,
    evaluations: Evaluations | None,
    checkpoints: Checkpoints | None,
) -> None:
    """Trains from the step of `progress` on; saves checkpoints, if there is a folder for them.

    Raises what `train` does.
    """
    strategy = model.distribute_strategy
    callbacks = [progress, tf_keras.callbacks.TerminateOnNaN()]
    callbacks += [evaluations] if evaluations else []
    data = distribute(strategy, lambda share: batches(progress.start, share))
    if not checkpoints:
        fit(model, data, settings, progress.start, callbacks)
        return
    with watching() as stop:
        callbacks += saving(strategy, stop, checkpoints, settings, progress)
        fit(model, data, settings, progress.start, callbacks)
    if stop.signal_number is not None:
        raise stop.interrupted(progress.step)


def check_all_done(settings, progress, evaluations):
    """The steps done must be those asked for: `fit` ends without a word where its data ends.

    Raises `InputError`.
    """
    over = evaluations and evaluations.is_over
    if progress.step < settings.steps and not over:
        raise InputError(
            f"Training ended at step {progress.step} of {settings.steps}, because its data did. "
            "Nothing of it was saved as a result. The files that it is read from may have changed "
            "meanwhile: give the same command again."
        )


def saving(strategy, stop, checkpoints, settings, progress):
    """Yields the callbacks that save, and hear of a request to stop.

    The first worker alone does. The others go on, because it needs them to finish its step.
    """
    chief = is_chief(strategy)
    if one_of_several(strategy):
        yield TellChief(f"{settings.output_dir}/checkpoints/stop", stop, chief)
    if chief:
        yield SaveCheckpoints(
            checkpoints, stop, progress.start, settings.save_every, settings.steps, progress.flush
        )


def fit(model, data, settings, start, callbacks):
    """tf_keras' `fit`, from a step to the last; the first callback is the `Progress`.

    Raises `Diverged`, `Interrupted` and `WorkerLost`.
    """
    try:
        history = model.fit(
            data, steps_per_epoch=settings.steps - start, epochs=1, verbose=0, callbacks=callbacks
        )
    except LOST as error:
        if not one_of_several(model.distribute_strategy):
            raise
        raise WorkerLost(
            f"Another worker was lost at step {callbacks[0].step}, and training cannot go on "
            "without it. Start all workers again with the same command: they go on from the last "
            f"checkpoint. TensorFlow says: {_reason(error)}"
        ) from error
    finally:
        callbacks[0].close()
    if not math.isfinite(history.history["loss"][-1]):
        raise Diverged(
            f"Training diverged at step {callbacks[0].step}: the loss is not finite. "
            f"Lower learning_rate={settings.learning_rate}. Nothing was saved.",
            f"learning_rate={settings.learning_rate}",
        )


def _reason(error):
    """The line of an error that names what happened to the workers."""
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Detected at node")] or lines
    return next((line for line in lines if "ollective" in line), lines[-1])[:300]


def mean_over_workers(strategy, number):
    """The mean of the workers' numbers, once all have come this far."""
    if not one_of_several(strategy):
        return number
    total = strategy.run(
        tf.function(
            lambda: tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM, tf.constant(float(number))
            )
        )
    )
    return float(strategy.experimental_local_results(total)[0]) / strategy.num_replicas_in_sync


def check_same_start(strategy, start):
    """All workers must have read the same checkpoint. Raises `InputError`."""
    if mean_over_workers(strategy, start) != start:
        raise InputError(
            f"This worker found a checkpoint of step {start}, another worker one of "
            "another step. output_dir must be a folder that all workers see, for "
            "example in gs://.",
            "output_dir",
        )


def compile_model(model, settings):
    """Compiles `model` with adapter-bert's optimizer, its own loss, and dropout by step.

    Returns:
      (schedule, optimizer).
    """
    schedule = Schedule(settings.learning_rate, settings.steps, settings.warmup_proportion)
    decay = settings.weight_decay
    optimizer = BertAdam(schedule, **OPTIMIZERS[settings.optimizer], weight_decay=decay)
    optimizer.build(model.trainable_variables)
    part = Part(settings.parts)
    seed_dropout(model, settings.seed, optimizer.iterations, part)
    model.compile(
        optimizer=optimizer,
        loss=settings.loss or model.training_loss(),
        jit_compile=settings.jit_compile,
        steps_per_execution=settings.steps_per_loop,
    )
    model.train_step = train_step_of(model, part)
    # The loss is the mean over all replicas already; of several workers tf_keras would add it up.
    model.distribute_reduction_method = "first"
    return schedule, optimizer
