"""What the flags mean: checks before anything expensive, and the values that modules take."""

import dataclasses
import math

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig, parse_layers
from adapter_bert_tf.adapters.kinds import PartsConfig
from adapter_bert_tf.command import table
from adapter_bert_tf.command.config_file import read_yaml
from adapter_bert_tf.command.roles import Role
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run import ownership
from adapter_bert_tf.run.ownership import adapter_dir, export_dir
from adapter_bert_tf.serving.export import require_export_place
from adapter_bert_tf.store import load_adapter, schema
from adapter_bert_tf.store.combine import without_lowest
from adapter_bert_tf.store.directory import adapter_exists, require_adapter_place
from adapter_bert_tf.training.loop import TrainingSettings
from adapter_bert_tf.training.trained import Tuning


def check(flags):
    """Checks the flags that need no file. Raises `InputError`."""
    if not flags.output_dir:
        raise InputError("--output_dir is missing: the folder for the adapter and the results.")
    actions = table.with_role(Role.TRAIN, Role.APPLY, Role.EXPORT)
    if not any(getattr(flags, name) for name in actions):
        asked = ", ".join(f"--{name}" for name in actions)
        raise InputError(f"Nothing to do: give at least one of {asked}.")
    if flags.do_export:
        require_export_place(export_dir(flags))
    if flags.do_train:
        require_adapter_place(adapter_dir(flags))
        _check_numbers(flags)
    if flags.do_train and not flags.overwrite:
        ownership.check_same_run(flags)


def _check_numbers(flags):
    rate = flags.learning_rate
    if rate is not None and not (math.isfinite(rate) and rate > 0):
        raise InputError(f"--learning_rate must be a number above 0. Received: {rate}")
    if not math.isfinite(flags.num_train_epochs):
        raise InputError(f"--num_train_epochs must be a number. Received: {flags.num_train_epochs}")


def warn_of_other_data(flags, record):
    """Warns where `--config` is the `run.json` of a run on other data.

    Args:
      flags: `RunFlags`.
      record: dict, what this run's `run.json` says of its data.
    """
    recorded = read_yaml(flags.config, "--config").get("data_sha256", {}) if flags.config else {}
    for split, digest in record["data_sha256"].items():
        if recorded.get(split, digest) != digest:
            logging.warning(
                "This does not repeat %s: that was a run on other %s examples.", flags.config, split
            )


def check_length(flags, base):
    """`--max_seq_length` must fit the base's position table. Raises `InputError`."""
    longest = base.config.max_sequence_length
    if flags.max_seq_length > longest:
        raise InputError(
            f"--max_seq_length={flags.max_seq_length} is over the base's position "
            f"table, which has {longest} rows."
        )


def find_saved(flags):
    """The saved adapter to evaluate, or None if a trained checkpoint is to be used instead."""
    if adapter_exists(adapter_dir(flags)) or flags.adapter_dir or not flags.init_checkpoint:
        return without_lowest(load_adapter(adapter_dir(flags)), flags.adapter_drop)
    return None


def require_trained_checkpoint(flags, untouched):
    """Without training and without an adapter, the checkpoint must hold adapters and head."""
    if untouched:
        raise InputError(
            f"There is nothing trained to evaluate: no adapter in {adapter_dir(flags)!r}, and "
            f"{flags.init_checkpoint} does not hold {untouched[0]!r}. Add --do_train, or "
            "--adapter_dir."
        )


def check_task(saved, task, split_seed=0):
    """A saved adapter must have been trained for the task and its labels. Raises `InputError`."""
    theirs = (saved.config["task"], saved.config["labels"])
    ours = (task.adapter_of or task.name, list(task.labels or theirs[1]))
    is_regression = saved.config.get("regression", False)
    if theirs != ours or is_regression != task.regression:
        raise InputError(
            f"The saved adapter was trained for the task {theirs[0]!r} with "
            f"{'scores' if is_regression else f'labels {theirs[1]}'}. Received: {ours[0]!r} with "
            f"{'scores' if task.regression else f'labels {ours[1]}'}."
        )
    divided = saved.config.get("split_seed")
    if divided not in (None, split_seed):
        raise InputError(
            f"The saved adapter was trained with --split_seed={divided}. With "
            f"{split_seed} the development set would hold its training data."
        )


def method(flags, num_layers, saved=None):
    """(`AdapterConfig` or None, `Tuning`), from the saved adapter if there is one, or the flags."""
    if saved:
        names = table.with_role(Role.METHOD)
        given = [f"--{name}" for name in names if name in flags.given]
        if given:
            logging.warning("Not used, the saved adapter decides: %s", ", ".join(given))
        return schema.adapter_of(saved.config), schema.tuning_of(saved.config)
    tuning = Tuning(flags.tuning, flags.top_k, flags.train_layer_norm, flags.train_pooler)
    if not tuning.needs_adapter:
        return None, tuning
    return adapter_config(flags).without_lowest(flags.adapter_drop, num_layers), tuning


def adapter_config(flags):
    """The `AdapterConfig` of `--adapter` and the flags that override it."""
    if flags.adapter in PRESETS:
        config = PRESETS[flags.adapter]
    elif storage.exists(flags.adapter) and not storage.isdir(flags.adapter):
        config = PartsConfig.from_json(storage.read_text(flags.adapter))
    else:
        raise InputError(
            f"--adapter must be one of {list(PRESETS)} or a JSON file. Received: {flags.adapter!r}"
        )
    overrides = {
        "bottleneck_size": flags.adapter_size,
        "init_scale": flags.adapter_init_scale,
        "layers": parse_layers(flags.adapter_layers),
    }
    given = {name: value for name, value in overrides.items() if value is not None}
    if given and not isinstance(config, AdapterConfig):
        raise InputError(
            f"--adapter={flags.adapter} is of the kind {config.kind!r}, without {list(given)}. "
            "Leave out --adapter_size, --adapter_layers and --adapter_init_scale."
        )
    return dataclasses.replace(config, **given)


def distribution(flags):
    """`--distribution`, or what `--use_tpu` means."""
    return "tpu" if flags.use_tpu else flags.distribution


def pad_to(flags):
    """What batch lengths are a multiple of; None for one fixed length."""
    if flags.pad_to is not None:
        return flags.pad_to or None
    if distribution(flags) == "tpu":
        return None
    return 32 if flags.jit_compile else 8  # XLA compiles anew for every length.


def training_steps(flags, examples):
    """Number of steps over `examples` training examples, as adapter-bert counts them."""
    if not flags.do_train:
        return 0
    steps = int(examples / flags.train_batch_size * flags.num_train_epochs)
    if steps < 1:
        raise InputError(
            f"No step to train: {examples} examples, --train_batch_size="
            f"{flags.train_batch_size}, --num_train_epochs={flags.num_train_epochs}."
        )
    return steps


def learning_rate(flags, tuning):
    """`--learning_rate`, or a default that suits the method."""
    if flags.learning_rate is not None:
        return flags.learning_rate
    return 5e-5 if tuning.changes_base else 1e-3


def training(flags, job):
    """The `TrainingSettings` of a job."""
    return TrainingSettings(
        steps=job.steps,
        batch_size=flags.train_batch_size,
        learning_rate=job.learning_rate,
        warmup_proportion=flags.warmup_proportion,
        optimizer=flags.optimizer,
        jit_compile=flags.jit_compile,
        save_every=flags.save_checkpoints_steps,
        steps_per_loop=steps_per_loop(flags),
        output_dir=flags.output_dir,
        seed=flags.seed,
    )


def steps_per_loop(flags):
    """Steps in one call: `--iterations_per_loop`; a TPU's host is to be asked seldom.

    Nothing is saved within a call, and no signal is heard.
    """
    asked = flags.iterations_per_loop or (100 if distribution(flags) == "tpu" else 1)
    return min(asked, flags.save_checkpoints_steps)
