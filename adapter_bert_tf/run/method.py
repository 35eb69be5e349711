"""From flags, or from a saved adapter, to what is trained."""

import dataclasses
from collections.abc import Collection

import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig, parse_layers
from adapter_bert_tf.adapters.kinds import PartsConfig
from adapter_bert_tf.base import Base
from adapter_bert_tf.command import table
from adapter_bert_tf.command.roles import Role
from adapter_bert_tf.command.run_flags import Part
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.plan import Method
from adapter_bert_tf.store import SavedAdapter, schema
from adapter_bert_tf.training.trained import Tuning

LARGEST_FILE = 1 << 20


def of(flags: Part, given: Collection[str], base: Base, saved: SavedAdapter | None) -> Method:
    """The method, from the saved adapter if there is one, or the flags.

    Args:
      flags: those of the method.
      given: names of the flags that the user gave.
      base: `Base`, which it must fit.
      saved: the adapter to apply, or None.

    Raises:
      InputError: when it does not fit the base, or is none.
    """
    depth = base.config.num_layers
    if saved:
        unused = [f"--{name}" for name in table.with_role(Role.METHOD) if name in given]
        if unused:
            logging.warning("Not used, the saved adapter decides: %s", ", ".join(unused))
        parts, tuning = schema.adapter_of(saved.config), schema.tuning_of(saved.config)
        return Method(parts, tuning, flags.adapter_dtype)
    tuning = Tuning(flags.tuning, flags.top_k, flags.train_layer_norm, flags.train_pooler)
    tuning.check_depth(depth)
    if not tuning.needs_adapter:
        return Method(None, tuning, flags.adapter_dtype)
    parts = _parts(flags).without_lowest(flags.adapter_drop, depth)
    parts.specs(dataclasses.asdict(base.config))
    return Method(parts, tuning, flags.adapter_dtype)


def _read_parts(path: str) -> PartsConfig:
    """The configuration in a JSON file. Raises `InputError`, naming the file."""
    try:
        return PartsConfig.from_json(storage.read_bytes(path, LARGEST_FILE))
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read --adapter={path}: {storage.reason(error)}") from error
    except InputError as error:
        raise InputError(f"--adapter={path}: {error}", *error.arguments) from error


def _parts(flags: Part) -> PartsConfig:
    """The configuration of `--adapter` and the flags that override it."""
    config: PartsConfig
    if flags.adapter in PRESETS:
        config = PRESETS[flags.adapter]
    elif storage.exists(flags.adapter) and not storage.isdir(flags.adapter):
        config = _read_parts(flags.adapter)
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
    return dataclasses.replace(config, **given) if given else config  # type: ignore[type-var]
