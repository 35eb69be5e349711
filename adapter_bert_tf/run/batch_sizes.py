"""Batch sizes and training settings of a run."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.command import DeviceConfig
from adapter_bert_tf.config.sections.training import TrainingConfig
from adapter_bert_tf.data.mixture import parse_temperature
from adapter_bert_tf.data.padding import FEW_LENGTHS, PadTo
from adapter_bert_tf.errors import InputError, error_context
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.run.plan import Batches, Method
from adapter_bert_tf.training.device import compilation
from adapter_bert_tf.training.loop import TrainingSettings
from adapter_bert_tf.training.optimizer import MOST_STEPS


def batches_of(config: RunConfig, replicas: int) -> Batches:
    """Returns the batch sizes; those of evaluation are rounded up to a multiple of the replicas."""
    size = config.training.train_batch_size
    if config.actions.do_train and size % replicas:
        below = size // replicas * replicas
        raise InputError(
            f"--train_batch_size={size} must be a multiple of the {replicas} replicas. Use "
            f"{below or replicas} or {below + replicas}."
        )
    with error_context("--sampling_temperature"):
        temperature = parse_temperature(config.training.sampling_temperature)
    return Batches(
        train=batch_size(config.training),
        evaluate=-(-config.evaluation.eval_batch_size // replicas) * replicas,
        predict=-(-config.evaluation.predict_batch_size // replicas) * replicas,
        max_seq_length=config.data.max_seq_length,
        pad_to=_pad_to(config, replicas),
        group_by_length=config.training.group_by_length,
        seed=config.training.seed,
        temperature=temperature,
        epochs=config.training.num_train_epochs,
    )


def batch_size(config: TrainingConfig) -> int:
    """Returns the number of examples in one step of the optimizer."""
    return config.train_batch_size * config.gradient_accumulation_steps


def _pad_to(config: RunConfig, replicas: int) -> PadTo:
    """Returns how the lengths of batches are rounded up."""
    if config.device.pad_to is not None:
        return config.device.pad_to or None
    if config.device.strategy == "tpu":
        return None
    if compiles(config.device, replicas):
        return FEW_LENGTHS
    # GPUs multiply multiples of 8 faster; on a CPU more padding is only slower.
    return 8 if compilation.gpu_count() else 2


def compiles(device: DeviceConfig, replicas: int) -> bool:
    """Whether XLA compiles the steps of a run on these devices."""
    gpus = 0 if device.strategy == "tpu" else compilation.gpu_count()
    missing = compilation.missing_on(gpus) if device.jit_compile is None else ()
    return compilation.is_compiled(device.jit_compile, gpus, replicas, missing)


def training_settings(
    config: RunConfig, method: Method, examples: int, loss: Loss | None, replicas: int
) -> TrainingSettings:
    """Returns how to train, with 0 steps for a run that does not train. Raises `InputError`."""
    training = config.training
    rate = training.learning_rate
    return TrainingSettings(
        steps=_steps(training, examples) if config.actions.do_train else 0,
        batch_size=batch_size(training),
        learning_rate=method.usual_rate if rate is None else rate,
        warmup_proportion=training.warmup_proportion,
        optimizer=training.optimizer,
        jit_compile=compiles(config.device, replicas),
        save_every=training.save_checkpoints_steps,
        steps_per_loop=steps_per_loop(config),
        output_dir=config.output.output_dir,
        seed=training.seed,
        weight_decay=training.weight_decay,
        microbatches=training.gradient_accumulation_steps,
        loss=loss,
    )


def _steps(config: TrainingConfig, examples: int) -> int:
    """Returns the number of steps, counted as in adapter-bert. Raises `InputError` for none."""
    steps = int(examples / batch_size(config) * config.num_train_epochs)
    if steps < 1:
        raise InputError(
            f"No step to train: {examples} examples, {batch_size(config)} a step "
            "(--train_batch_size times --gradient_accumulation_steps), "
            f"--num_train_epochs={config.num_train_epochs}. Use smaller batches or more epochs."
        )
    if steps > MOST_STEPS:
        raise InputError(
            f"Training has at most {MOST_STEPS:,} steps, which the optimizer can count. Received: "
            f"{steps:,}. Use a larger --train_batch_size, or --gradient_accumulation_steps."
        )
    return steps


def steps_per_loop(config: RunConfig) -> int:
    """Returns the steps of one call, without checkpoints and signals; a TPU's host is slow."""
    default = 100 if config.device.strategy == "tpu" else 1
    return min(config.device.iterations_per_loop or default, config.training.save_checkpoints_steps)
