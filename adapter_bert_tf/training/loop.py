"""The training loop: tf_keras' `fit`, interruptible and resumable at any step."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.errors import Diverged, InputError, Mismatch, WorkerLost, is_out_of_memory
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.training.accumulation import make_train_step
from adapter_bert_tf.training.best import Variables
from adapter_bert_tf.training.checkpoints import Checkpoints, SaveCheckpoints
from adapter_bert_tf.training.device.compilation import train_function
from adapter_bert_tf.training.device.loss_scaling import needs_loss_scaling, with_loss_scaling
from adapter_bert_tf.training.device.strategy import (
    distribute,
    io_device,
    is_chief,
    is_multi_worker,
)
from adapter_bert_tf.training.dropout import Microbatch, seed_dropout
from adapter_bert_tf.training.evaluation import Evaluation, EvaluationCallback
from adapter_bert_tf.training.interruption import StopRelay, catch_signals
from adapter_bert_tf.training.optimizer import OPTIMIZERS, BertAdam, Schedule
from adapter_bert_tf.training.progress import Progress

Batches = Callable[[int, HostShard], tf.data.Dataset]
# Raised by collective operations when another worker is lost.
WORKER_LOST_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
)


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training loop.

    Args:
      steps: number of optimizer steps.
      batch_size: examples per step, over all replicas.
      learning_rate: the peak.
      warmup_proportion: proportion of the steps that warm up.
      optimizer: a key of `OPTIMIZERS`.
      jit_compile: whether XLA compiles the step.
      steps_per_loop: steps in one call of the compiled loop.
      save_every: steps between checkpoints.
      output_dir: folder for checkpoints and progress; None for neither.
      seed: the seed of dropout.
      weight_decay: weight decay of the optimizer.
      loss: training loss; None for the model's own.
      microbatches: number of microbatches of a batch, for gradient accumulation; must divide the
        batch size.
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
    microbatches: int = 1


def train(
    model: tf_keras.Model,
    trained: Variables,
    batches: Batches,
    settings: TrainingSettings,
    evaluation: Evaluation | None = None,
) -> Progress:
    """Fits `model`; resumes an interrupted run of the same folder.

    Batches and dropout are functions of the step, so the weights do not depend on interruptions.

    Args:
      model: compiled by this function; its `trainable_variables` are those of `trained`.
      trained: dict from common name to variable.
      batches: function from a step and a `HostShard` to a `tf.data.Dataset` of the batches from
        that step to the last of `settings.steps`.
      settings: `TrainingSettings`.
      evaluation: `Evaluation` during training; None for none.

    Returns:
      the `Progress`, with the seconds and examples/s of the run, its last step, and the step of the
      model's weights.

    Raises:
      Diverged: when the loss is not finite.
      InputError: when there are checkpoints and none is readable.
      Interrupted: on a request to stop; a checkpoint holds all steps done.
      WorkerLost: when another worker is lost.
    """
    strategy = model.distribute_strategy
    if evaluation and evaluation.every:  # The compiled loop cannot evaluate.
        longest = min(settings.steps_per_loop, evaluation.every)
        settings = dataclasses.replace(settings, steps_per_loop=longest)
    with strategy.scope():
        schedule, optimizer = compile_model(model, settings)
    checkpoints, start = restore_latest(strategy, settings, trained, optimizer)
    writes = settings.output_dir if is_chief(strategy) else None
    progress = Progress(settings.steps, settings.batch_size, schedule, writes, start)
    evaluations = None
    if evaluation:
        folder = checkpoints.folder if checkpoints else None
        evaluations = EvaluationCallback(evaluation, trained, progress, folder, is_chief(strategy))
    if start < settings.steps and not (evaluations and evaluations.should_stop):
        if float(schedule(0)) == 0:  # The first rate is 0 only if all are, as with a single step.
            logging.warning(
                "This training changes nothing: the learning rate falls to 0 at the last step, and "
                f"there is only {settings.steps} step. Train more epochs, or use a smaller batch "
                f"than {settings.batch_size}."
            )
        run_steps(model, batches, settings, progress, evaluations, checkpoints)
        stopped_early = evaluations and evaluations.should_stop
        if progress.step < settings.steps and not stopped_early:
            # `fit` ends silently at the end of its data.
            raise InputError(
                f"Training ended at step {progress.step} of {settings.steps}, because its data "
                "ended. No result was saved. The data files may have changed during training. Run "
                "the same command again."
            )
    report_skipped(progress, optimizer)
    if evaluations:
        with strategy.scope():
            evaluations.finish()
    return progress


def restore_latest(
    strategy: tf.distribute.Strategy,
    settings: TrainingSettings,
    trained: Variables,
    optimizer: Any,
) -> tuple[Checkpoints | None, int]:
    """Restores the latest checkpoint; returns `Checkpoints` and its step, (None, 0) without any.

    Raises `InputError` unless all workers have restored the same step.
    """
    mean_over_workers(strategy, 0)  # Waits until the chief has cleared the folder.
    checkpoints, start = None, 0
    if settings.output_dir:
        folder = f"{settings.output_dir}/checkpoints"
        checkpoints = Checkpoints(folder, trained, optimizer, io_device(strategy))
        start = checkpoints.restore()
    if mean_over_workers(strategy, start) != start:
        raise Mismatch(
            f"This worker has a checkpoint of step {start}, and another worker of a different "
            "step. output_dir must be a folder that all workers share, for example in gs://.",
            "output_dir",
        )
    return checkpoints, start


def run_steps(
    model: tf_keras.Model,
    batches: Batches,
    settings: TrainingSettings,
    progress: Progress,
    evaluations: EvaluationCallback | None,
    checkpoints: Checkpoints | None,
) -> None:
    """Trains from the step of `progress` to the last; saves checkpoints if there is a folder."""
    strategy = model.distribute_strategy
    callbacks = [progress, tf_keras.callbacks.TerminateOnNaN()]
    callbacks += [evaluations] if evaluations else []
    data = distribute(strategy, lambda share: batches(progress.start, share))
    if settings.jit_compile and strategy.num_replicas_in_sync == settings.steps_per_loop == 1:
        model.train_function = train_function(model, data.element_spec, progress)
    if not checkpoints:
        fit(model, data, settings, progress.start, callbacks)
        return
    with catch_signals() as stop:
        callbacks += checkpoint_callbacks(strategy, stop, checkpoints, settings, progress)
        fit(model, data, settings, progress.start, callbacks)
    if stop.signal_number is not None:
        raise stop.interrupted(progress.step)


def checkpoint_callbacks(strategy, stop, checkpoints, settings, progress):
    """Yields the callbacks that save checkpoints and handle a request to stop.

    Only the chief saves and stops: it needs the other workers to finish its step.
    """
    chief = is_chief(strategy)
    if is_multi_worker(strategy):
        yield StopRelay(f"{settings.output_dir}/checkpoints/stop", stop, chief)
    if chief:
        yield SaveCheckpoints(
            checkpoints, stop, progress.start, settings.save_every, settings.steps, progress.flush
        )


def report_skipped(progress: Progress, optimizer: Any) -> None:
    """Prints how many steps a float16 training skipped, also before it was resumed."""
    skipped = getattr(optimizer, "skipped_steps", None)
    if skipped is None:
        return
    progress.skipped_steps = int(skipped.numpy())
    if progress.skipped_steps:
        progress.print_line(
            f"{progress.skipped_steps} of {progress.step} steps were skipped: a gradient exceeded "
            f"float16. The loss scale ends at {float(optimizer.loss_scale):g}."
        )


def fit(model, data, settings, start, callbacks):
    """Runs tf_keras' `fit` from a step to the last; the first callback is the `Progress`."""
    try:
        history = model.fit(
            data, steps_per_epoch=settings.steps - start, epochs=1, verbose=0, callbacks=callbacks
        )
    except WORKER_LOST_ERRORS as error:
        if not is_multi_worker(model.distribute_strategy) or is_out_of_memory(error):
            raise
        raise WorkerLost(
            f"Another worker was lost at step {callbacks[0].step}, and training cannot continue "
            "without it. Start all workers again with the same command to continue from the last "
            f"checkpoint. TensorFlow reports: {_reason(error)}"
        ) from error
    finally:
        callbacks[0].close()
    if not math.isfinite(history.history["loss"][-1]):
        hint = ", or train in another precision than float16" if needs_loss_scaling(model) else ""
        saved = max([start, *(c.saved for c in callbacks if isinstance(c, SaveCheckpoints))])
        raise Diverged(
            f"Training diverged at step {callbacks[0].step}: the loss is not finite. "
            f"Lower learning_rate={settings.learning_rate}{hint}. {_describe_saved(saved)}",
            *(f"learning_rate={settings.learning_rate}", "overwrite=True"),
        )


def _describe_saved(step):
    """Returns what a diverged run leaves to others, with the step of its last checkpoint or 0."""
    if not step:
        return "Nothing was saved."
    return f"Add overwrite=True, which replaces the checkpoint of step {step}."


def _reason(error):
    """Returns the line of an error that names the failed collective operation."""
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Detected at node")] or lines
    return next((line for line in lines if "ollective" in line), lines[-1])[:300]


def mean_over_workers(strategy, number):
    """Averages a number over all workers; waits until all have reached this point."""
    if not is_multi_worker(strategy):
        return number

    @tf.function
    def add() -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(float(number)))

    total = strategy.run(add)
    return float(strategy.experimental_local_results(total)[0]) / strategy.num_replicas_in_sync


def compile_model(model, settings):
    """Compiles `model` with loss and reproducible dropout; returns (schedule, optimizer)."""
    schedule = Schedule(settings.learning_rate, settings.steps, settings.warmup_proportion)
    decay = settings.weight_decay
    optimizer = BertAdam(schedule, **OPTIMIZERS[settings.optimizer], weight_decay=decay)
    optimizer.build(model.trainable_variables)
    if needs_loss_scaling(model):
        optimizer = with_loss_scaling(optimizer)
    microbatch = Microbatch(settings.microbatches)
    seed_dropout(
        model, settings.seed, optimizer.iterations, microbatch, counted=settings.jit_compile
    )
    model.compile(
        optimizer=optimizer,
        loss=settings.loss or model.training_loss(),
        jit_compile=settings.jit_compile,
        steps_per_execution=settings.steps_per_loop,
    )
    model.train_step = make_train_step(model, microbatch)
    # The loss is already the mean over all replicas; tf_keras would sum it over workers.
    model.distribute_reduction_method = "first"
    return schedule, optimizer
