"""How much one step holds, and how many there are: batches and training settings, from flags."""

import tensorflow as tf

from adapter_bert_tf.config import checks
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.data.mixture import Temperature, parse_temperature
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.plan import Actions, Batches, Method
from adapter_bert_tf.training.loop import TrainingSettings


def distribution(flags: RunFlags) -> str:
    """`--distribution`, or what `--use_tpu` means."""
    return "tpu" if flags.use_tpu else flags.distribution


def batches_of(flags: RunFlags, actions: Actions, replicas: int) -> Batches:
    """The sizes of batches; those of evaluation are rounded up to a multiple of the replicas."""
    if actions.train and flags.train_batch_size % replicas:
        below = flags.train_batch_size // replicas * replicas
        raise InputError(
            f"--train_batch_size={flags.train_batch_size} is the batch of all "
            f"{replicas} replicas together, and they must divide it. Use "
            f"{below or replicas} or {below + replicas}."
        )
    return Batches(
        train=batch_size(flags),
        evaluate=-(-flags.eval_batch_size // replicas) * replicas,
        predict=-(-flags.predict_batch_size // replicas) * replicas,
        max_seq_length=flags.max_seq_length,
        pad_to=_pad_to(flags),
        group_by_length=flags.group_by_length,
        seed=flags.seed,
        temperature=_temperature(flags),
        epochs=flags.num_train_epochs,
    )


def batch_size(flags: RunFlags) -> int:
    """Examples of one step of the optimizer."""
    return flags.train_batch_size * flags.gradient_accumulation_steps


def _temperature(flags: RunFlags) -> Temperature:
    """How often each of several tasks is drawn. Raises `InputError`, naming the flag."""
    try:
        return parse_temperature(getattr(flags, "sampling_temperature", "1"))
    except InputError as error:
        raise InputError(f"--sampling_temperature: {error}") from error


def _pad_to(flags: RunFlags) -> int | None:
    """What batch lengths are a multiple of; None for one fixed length."""
    if flags.pad_to is not None:
        return flags.pad_to or None
    if distribution(flags) == "tpu":
        return None
    if flags.jit_compile:
        return 32  # XLA compiles anew for every length.
    # GPUs multiply multiples of 8 faster; a CPU is only the slower for more padding.
    return 8 if tf.config.list_physical_devices("GPU") else 2


def training_settings(
    flags: RunFlags, actions: Actions, chosen: Method, examples: int
) -> TrainingSettings:
    """How to train, and for how many steps: none where nothing is trained.

    Args:
      flags: of the run.
      actions: that it asks for.
      chosen: the method, whose usual learning rate counts where none is asked for.
      examples: of training, of all tasks together.

    Raises:
      InputError: for rates that cannot be, or too few examples for one step.
    """
    if actions.train:
        checks.check_rates(flags)
    rate = flags.learning_rate
    return TrainingSettings(
        steps=_steps(flags, examples) if actions.train else 0,
        batch_size=batch_size(flags),
        learning_rate=chosen.tuning.usual_rate if rate is None else rate,
        warmup_proportion=flags.warmup_proportion,
        optimizer=flags.optimizer,
        jit_compile=flags.jit_compile,
        save_every=flags.save_checkpoints_steps,
        steps_per_loop=steps_per_loop(flags),
        output_dir=flags.output_dir,
        seed=flags.seed,
        weight_decay=flags.weight_decay,
        microbatches=flags.gradient_accumulation_steps,
    )


def _steps(flags: RunFlags, examples: int) -> int:
    """Number of steps over `examples` training examples, as adapter-bert counts them."""
    steps = int(examples / batch_size(flags) * flags.num_train_epochs)
    if steps < 1:
        raise InputError(
            f"No step to train: {examples} examples, {batch_size(flags)} a step "
            "(--train_batch_size times --gradient_accumulation_steps), "
            f"--num_train_epochs={flags.num_train_epochs}. Take smaller batches or more epochs."
        )
    return steps


def steps_per_loop(flags: RunFlags) -> int:
    """Steps in one call: `--iterations_per_loop`; a TPU's host is to be asked seldom.

    Nothing is saved within a call, and no signal is heard.
    """
    asked = flags.iterations_per_loop or (100 if distribution(flags) == "tpu" else 1)
    return min(asked, flags.save_checkpoints_steps)
