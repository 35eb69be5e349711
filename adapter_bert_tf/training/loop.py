"""The training loop: tf_keras' `fit`, with checkpoints of what is trained and nothing else."""

import dataclasses
import math

import tensorflow as tf
import tf_keras

from adapter_bert_tf.errors import Diverged, InputError
from adapter_bert_tf.training.optimizer import OPTIMIZERS, BertAdam, Schedule
from adapter_bert_tf.training.progress import Progress


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """How to train; the flags of the same names.

    Args:
      steps: number of optimizer steps.
      batch_size: examples a step, over all replicas.
      learning_rate: the peak.
      warmup_proportion: share of the steps that warm up.
      optimizer: a key of `OPTIMIZERS`.
      jit_compile: whether XLA compiles the step.
      steps_per_loop: steps in one call of the compiled loop; above 1 only on TPU.
      save_every: steps between checkpoints.
      output_dir: folder for checkpoints and progress; None for neither.
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


def train(model, trained, batches, settings):
    """Fits `model` to `batches`; takes an interrupted run of the same folder up again.

    Args:
      model: compiled by this function; its `trainable_variables` are those of `trained`.
      trained: dict from common name to variable.
      batches: `tf.data.Dataset` of `settings.steps` batches.
      settings: `TrainingSettings`.

    Returns:
      the `Progress`, with the seconds and examples/s of the run.

    Raises:
      Diverged: when the loss is not finite.
      InputError: when the checkpoint to resume from is damaged.
    """
    schedule, optimizer = compile_model(model, settings)
    callbacks = []
    start = 0
    if settings.output_dir:
        checkpoint = tf.train.Checkpoint(optimizer=optimizer, trained=trained)
        manager = tf.train.CheckpointManager(
            checkpoint, f"{settings.output_dir}/checkpoints", max_to_keep=2)
        if manager.latest_checkpoint:
            _restore(checkpoint, manager.latest_checkpoint)
            start = int(optimizer.iterations)
            print(f"Resuming from step {start}: {manager.latest_checkpoint}", flush=True)
        callbacks.append(SaveCheckpoints(manager, start, settings.save_every, settings.steps))
    progress = Progress(settings.steps, settings.batch_size, schedule, settings.output_dir, start)
    if start < settings.steps:
        callbacks = [progress, tf_keras.callbacks.TerminateOnNaN(), *callbacks]
        history = model.fit(batches.skip(start), steps_per_epoch=settings.steps - start, epochs=1,
                            verbose=0, callbacks=callbacks)
        if not math.isfinite(history.history["loss"][-1]):
            raise Diverged(f"Training diverged at step {progress.step}: the loss is not finite. "
                             f"Lower --learning_rate={settings.learning_rate}. Nothing was saved.")
    return progress


def _restore(checkpoint, path):
    try:
        checkpoint.restore(path)
    except (tf.errors.OpError, IndexError, ValueError) as error:
        raise InputError(f"The checkpoint {path} is damaged: {error}. Start again with "
                         "--overwrite.") from error


def compile_model(model, settings):
    """Compiles `model` with adapter-bert's optimizer and its own loss.

    Returns:
      (schedule, optimizer).
    """
    schedule = Schedule(settings.learning_rate, settings.steps, settings.warmup_proportion)
    optimizer = BertAdam(schedule, **OPTIMIZERS[settings.optimizer])
    model.compile(
        optimizer=optimizer,
        loss=model.training_loss(),
        jit_compile=settings.jit_compile, steps_per_execution=settings.steps_per_loop,
    )
    return schedule, optimizer


class SaveCheckpoints(tf_keras.callbacks.Callback):
    """Saves every so many steps, and after the last.

    Args:
      manager: `tf.train.CheckpointManager`, which names them by step.
      start: steps already done.
      every: steps between checkpoints.
      steps: number of training steps.
    """

    _supports_tf_logs = True

    def __init__(self, manager, start, every, steps):
        super().__init__()
        self.manager, self.start, self.every, self.steps = manager, start, every, steps
        self.saved = start

    def on_train_batch_end(self, batch, logs=None):
        step = self.start + batch + 1
        due = step // self.every > self.saved // self.every or step == self.steps
        if due and math.isfinite(float(logs["loss"])):
            self.manager.save(checkpoint_number=step)
            self.saved = step
