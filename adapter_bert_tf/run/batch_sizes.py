"""Batches and training settings of a run."""

import tensorflow as tf

from adapter_bert_tf.config import checks
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.training import TrainingConfig
from adapter_bert_tf.data.mixture import Temperature, parse_temperature
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.plan import Batches, Method
from adapter_bert_tf.training.loop import TrainingSettings


def distribution(config: RunConfig) -> str:
    """`--distribution`, or what `--use_tpu` means."""
    return "tpu" if config.device.use_tpu else config.device.distribution


def batches_of(config: RunConfig, replicas: int) -> Batches:
    """Sizes of batches; those of evaluation are rounded up to a multiple of the replicas."""
    size = config.training.train_batch_size
    if config.actions.do_train and size % replicas:
        below = size // replicas * replicas
        raise InputError(
            f"--train_batch_size={size} is the batch of all {replicas} replicas together, and they "
            f"must divide it. Use {below or replicas} or {below + replicas}."
        )
    return Batches(
        train=batch_size(config.training),
        evaluate=-(-config.evaluation.eval_batch_size // replicas) * replicas,
        predict=-(-config.evaluation.predict_batch_size // replicas) * replicas,
        max_seq_length=config.data.max_seq_length,
        pad_to=_pad_to(config),
        group_by_length=config.training.group_by_length,
        seed=config.training.seed,
        temperature=_temperature(config.training),
        epochs=config.training.num_train_epochs,
    )


def batch_size(config: TrainingConfig) -> int:
    """Examples of one step of the optimizer."""
    return config.train_batch_size * config.gradient_accumulation_steps


def _temperature(config: TrainingConfig) -> Temperature:
    """How often each of several tasks is drawn. Raises `InputError`, naming the flag."""
    try:
        return parse_temperature(config.sampling_temperature)
    except InputError as error:
        raise InputError(f"--sampling_temperature: {error}") from error


def _pad_to(config: RunConfig) -> int | None:
    """What batch lengths are a multiple of; None for one fixed length."""
    if config.device.pad_to is not None:
        return config.device.pad_to or None
    if distribution(config) == "tpu":
        return None
    if config.device.jit_compile:
        return 32  # XLA compiles once for each length.
    # GPUs multiply multiples of 8 faster; on a CPU more padding is only slower.
    return 8 if tf.config.list_physical_devices("GPU") else 2


def training_settings(config: RunConfig, method: Method, examples: int) -> TrainingSettings:
    """How to train, and for how many steps: none where nothing is trained.

    Args:
      config: of the run.
      method: its default learning rate counts where none is given.
      examples: training examples of all tasks together.

    Raises:
      InputError: for impossible rates, or too few examples for one step.
    """
    training = config.training
    if config.actions.do_train:
        checks.check_rates(config)
    rate = training.learning_rate
    return TrainingSettings(
        steps=_steps(training, examples) if config.actions.do_train else 0,
        batch_size=batch_size(training),
        learning_rate=method.tuning.usual_rate if rate is None else rate,
        warmup_proportion=training.warmup_proportion,
        optimizer=training.optimizer,
        jit_compile=config.device.jit_compile,
        save_every=training.save_checkpoints_steps,
        steps_per_loop=steps_per_loop(config),
        output_dir=config.output.output_dir,
        seed=training.seed,
        weight_decay=training.weight_decay,
        microbatches=training.gradient_accumulation_steps,
    )


def _steps(config: TrainingConfig, examples: int) -> int:
    """Number of steps over the training examples, counted as in adapter-bert."""
    steps = int(examples / batch_size(config) * config.num_train_epochs)
    if steps < 1:
        raise InputError(
            f"No step to train: {examples} examples, {batch_size(config)} a step "
            "(--train_batch_size times --gradient_accumulation_steps), "
            f"--num_train_epochs={config.num_train_epochs}. Use smaller batches or more epochs."
        )
    return steps


def steps_per_loop(config: RunConfig) -> int:
    """Steps in one call: `--iterations_per_loop`; many on a TPU, whose host is slow to reach.

    Within a call nothing is saved, and no signal is handled.
    """
    default = 100 if distribution(config) == "tpu" else 1
    return min(config.device.iterations_per_loop or default, config.training.save_checkpoints_steps)
