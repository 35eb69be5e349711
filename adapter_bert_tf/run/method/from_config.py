"""From flags, or from a saved adapter, to what is trained."""

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig, parse_layers
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.methods.multitask import MultitaskConfig
from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base import Base
from adapter_bert_tf.config import table
from adapter_bert_tf.config.flags_several import HYPER
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_flags import Part
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.method.fusion_members import check_members
from adapter_bert_tf.run.method.multitask import as_flags, hyperformer, pals
from adapter_bert_tf.run.plan import Method
from adapter_bert_tf.store import SavedAdapter, contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.members import Member, make_fusion_config
from adapter_bert_tf.training.tuning import Tuning

LARGEST_FILE = 1 << 20


def method_from_flags(
    flags: Part,
    given: Collection[str],
    base: Base,
    saved: SavedAdapter | None,
    start: InitialAdapter | None = None,
    members: Sequence[Member] = (),
    names: Sequence[str] = (),
) -> Method:
    """The method, from a saved adapter if there is one, or the flags.

    Args:
      flags: those of the method.
      given: names of the flags that the user gave.
      base: `Base`, which it must fit.
      saved: the adapter to apply, or None.
      start: the adapter to begin from, or None.
      members: of a fusion.
      names: of several tasks that are trained together.

    Raises:
      InputError: when it does not fit the base, is none, or is not that of `start`.
    """
    depth = base.config.num_layers
    if saved:
        unused = [f"--{name}" for name in table.with_role(Role.METHOD) if name in given]
        if unused:
            logging.warning("Not used, the saved adapter decides: %s", ", ".join(unused))
        parts, tuning = contents.adapter_of(saved.config), contents.tuning_of(saved.config)
        return Method(parts, tuning, flags.adapter_dtype)
    if start:
        return _of_start(flags, given, base, start, names)
    check_members(members, base)
    tuning = Tuning(
        flags.tuning,
        flags.top_k,
        flags.train_layer_norm,
        bool(flags.train_pooler),  # None, that the base decides, is left in runs that train nothing
        flags.train_members,
        flags.frozen_layers,
    )
    tuning.check_depth(depth)
    if not tuning.needs_adapter:
        return Method(None, tuning, flags.adapter_dtype)
    chosen = _chosen(flags, members, names, base.config.hidden_size)
    _check_above_frozen(flags, chosen)
    chosen = chosen.without_lowest(max(flags.adapter_drop, flags.frozen_layers), depth)
    chosen.specs(dataclasses.asdict(base.config))
    return Method(chosen, tuning, flags.adapter_dtype)


def _check_above_frozen(flags: Part, chosen: ModuleConfig) -> None:
    """Adapters cannot be asked for in layers that are frozen. Raises `InputError`."""
    adapter = chosen.single_task_config() if isinstance(chosen, MultitaskConfig) else chosen
    layers = getattr(adapter, "layers", None)
    if layers and min(layers) < flags.frozen_layers:
        where = "--adapter_layers" if flags.adapter_layers else f"--adapter={flags.adapter}"
        raise InputError(
            f"{where} names the layers {', '.join(map(str, layers))}, and "
            f"--frozen_layers={flags.frozen_layers} leaves the lowest as they are. Name none below "
            f"{flags.frozen_layers}, or no layers at all: then all above have adapters."
        )


def _chosen(
    flags: Part, members: Sequence[Member], names: Sequence[str], hidden_size: int
) -> ModuleConfig:
    """The configuration that `--tuning` and the flags beside it ask for."""
    if flags.tuning == "fusion":
        return _fusion(flags, members)
    if flags.tuning in HYPER:
        return hyperformer(flags, names, hidden_size, _layers(flags))
    if flags.tuning == "pals":
        return pals(flags, names)
    parts = _parts(flags)
    is_one_each = flags.tuning == "per_task_adapters" and isinstance(parts, AdapterConfig)
    return PerTaskConfig(parts, tuple(names)) if is_one_each else parts  # type: ignore[arg-type]


def _fusion(flags: Part, members: Sequence[Member]) -> ModuleConfig:
    if not members:
        raise InputError(
            "--tuning=fusion: there is no fusion to apply, and none is trained. Add --do_train, or "
            "name the adapter directory of one (--adapter_dir)."
        )
    try:
        return make_fusion_config(members, flags.fusion_cooling_steps)
    except InputError as error:
        raise InputError(f"--fuse: {error}", *error.arguments) from error


def _of_start(
    flags: Part, given: Collection[str], base: Base, start: InitialAdapter, names: Sequence[str]
) -> Method:
    """The method of the adapter to begin from, which the flags must not contradict."""
    config = start.saved.config
    check_base(config, base.fingerprint())
    parts, tuning = contents.adapter_of(config), contents.tuning_of(config)
    theirs = _as_flags(flags, parts, tuning, base.config.num_layers)
    different = [
        f"--{name}={getattr(flags, name)}"
        for name in table.with_role(Role.METHOD)
        if name in given and not theirs.get(name, False)
    ]
    if different:
        said = [tuning.method, parts.summary() if parts else "no adapters"]
        if tuning.frozen_layers:
            said.append(f"of the layers the lowest {tuning.frozen_layers} frozen")
        raise InputError(
            f"{', '.join(different)}: the adapter in --init_from={start.folder} was trained "
            f"otherwise ({'; '.join(said)}). Leave the flag out, or train from the beginning."
        )
    if isinstance(parts, MultitaskConfig) and names:
        sources = {name: name if name in parts.tasks else start.task for name in names}
        parts.values_for_tasks(start.saved.weights, sources)  # It must have something for each.
        parts = dataclasses.replace(parts, tasks=tuple(names))  # type: ignore[type-var]
    return Method(parts, tuning, flags.adapter_dtype)


def _as_flags(
    flags: Part, parts: ModuleConfig | None, tuning: Tuning, depth: int
) -> dict[str, bool]:
    """Whether each flag of the method says what a saved adapter is."""
    of_tasks = as_flags(flags, parts)
    parts = parts.single_task_config() if isinstance(parts, MultitaskConfig) else parts
    same = of_tasks | {
        "tuning": flags.tuning == tuning.method,
        "top_k": flags.top_k == tuning.top_k,
        "train_layer_norm": flags.train_layer_norm == tuning.train_layer_norm,
        "train_pooler": flags.train_pooler == tuning.train_pooler,
        "train_members": flags.train_members == tuning.train_members,
        "frozen_layers": flags.frozen_layers == tuning.frozen_layers,
        "fusion_cooling_steps": isinstance(parts, FusionConfig)
        and flags.fusion_cooling_steps == parts.cooling_steps,
        "adapter": parts is not None and _is_named(flags, parts, depth),
    }
    if not isinstance(parts, AdapterConfig):
        return same
    layers = dataclasses.replace(parts, layers=_layers(flags))
    return same | {
        "adapter_size": flags.adapter_size == parts.bottleneck_size,
        "adapter_init_scale": flags.adapter_init_scale == parts.init_scale,
        "adapter_layers": layers.layer_indices(depth) == parts.layer_indices(depth),
    }


def _is_named(flags: Part, parts: ModuleConfig, depth: int) -> bool:
    """Whether `--adapter` names what an adapter is; of a preset not its size, layers and start."""
    named = _named(flags.adapter)
    if not (isinstance(named, AdapterConfig) and isinstance(parts, AdapterConfig)):
        return named == parts
    own: dict[str, Any] = {"bottleneck_size": parts.bottleneck_size, "init_scale": parts.init_scale}
    if flags.adapter not in PRESETS:
        given = {"bottleneck_size": flags.adapter_size, "init_scale": flags.adapter_init_scale}
        own = {name: value for name, value in own.items() if given[name] is not None}
    return dataclasses.replace(named, layers=parts.layers, **own) == parts


def _named(adapter: str) -> ModuleConfig:
    """The configuration of `--adapter`: a preset, or what a file says."""
    if adapter in PRESETS:
        return PRESETS[adapter]
    if storage.exists(adapter) and not storage.isdir(adapter):
        return _read_parts(adapter)
    raise InputError(
        f"--adapter must be one of {list(PRESETS)} or a JSON file. Received: {adapter!r}"
    )


def _read_parts(path: str) -> ModuleConfig:
    """The configuration in a JSON file. Raises `InputError`, naming the file."""
    try:
        return ModuleConfig.from_json(storage.read_bytes(path, LARGEST_FILE))
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read --adapter={path}: {storage.reason(error)}") from error
    except InputError as error:
        raise InputError(f"--adapter={path}: {error}", *error.arguments) from error


def _layers(flags: Part) -> tuple[int, ...] | None:
    """The layers of `--adapter_layers`, or None. Raises `InputError`, naming the flag."""
    try:
        return parse_layers(flags.adapter_layers)
    except InputError as error:
        raise InputError(f"--adapter_layers: {error}") from error


def _parts(flags: Part) -> ModuleConfig:
    """The configuration of `--adapter` and the flags that override it."""
    config = _named(flags.adapter)
    overrides = {
        "bottleneck_size": flags.adapter_size,
        "init_scale": flags.adapter_init_scale,
        "layers": _layers(flags),
    }
    given = {name: value for name, value in overrides.items() if value is not None}
    if given and not isinstance(config, AdapterConfig):
        raise InputError(
            f"--adapter={flags.adapter} is of the kind {config.kind!r}, without {list(given)}. "
            "Leave out --adapter_size, --adapter_layers and --adapter_init_scale."
        )
    return dataclasses.replace(config, **given) if given else config  # type: ignore[type-var]
