"""What a run trains: from its settings, a saved adapter, or the adapter that it starts from."""

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.fields import parse_layers
from adapter_bert_tf.adapters.languages.stack import StackConfig
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.adapters.registry import ModuleConfig, of_kind
from adapter_bert_tf.adapters.variable_specs import Sizes
from adapter_bert_tf.base import Base
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.model import HYPERFORMERS, MethodConfig
from adapter_bert_tf.config.settings import with_role
from adapter_bert_tf.errors import (
    Conflict,
    InputError,
    Mismatch,
    Missing,
    Unavailable,
    error_context,
)
from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.run.method import multitask
from adapter_bert_tf.run.plan import Method
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import SavedAdapter, contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.combining.stacking import check_frozen, load_below, on_top
from adapter_bert_tf.store.directory import parse_named_folders
from adapter_bert_tf.store.members import Member, load_member, make_fusion_config
from adapter_bert_tf.training.tuning import Tuning

LARGEST_FILE = 1 << 20
PER_TASK = "per_task_adapters"
# What each of these settings changes in a preset or a file: `ModuleConfig.adjustable`.
ADJUSTING = {
    "adapter_size": "size",
    "adapter_layers": "layers",
    "adapter_init_scale": "init_scale",
}


def load_members(config: RunConfig, initial: InitialAdapter | None) -> tuple[Member, ...]:
    """Loads the members of a fusion or a stack, or has them from the initial adapter.

    The adapter of `--stack` is the only one of a stack. Raises `InputError` for a missing or
    damaged member.
    """
    if config.training.stack:
        with error_context("--stack"):
            return (load_below(config.training.stack),)
    if not config.actions.do_train:
        return ()
    if initial:
        return initial.saved.members
    if config.method.tuning != "fusion":
        return ()
    folders = parse_named_folders(config.training.fuse or "")
    with error_context("--fuse"):
        return tuple(load_member(folder, name or None) for name, folder in folders)


def method_from_config(
    config: MethodConfig,
    given: Collection[str],
    base: Base,
    saved: SavedAdapter | None,
    initial: InitialAdapter | None = None,
    members: Sequence[Member] = (),
    task_names: Sequence[str] = (),
) -> Method:
    """Returns the method of a saved adapter if there is one, else of the settings.

    Args:
      config: settings of the method.
      given: names of the settings that the user gave.
      base: which the method must fit.
      saved: the adapter to apply, or None.
      initial: the adapter to start from, or None.
      members: of a fusion.
      task_names: of several tasks that are trained together.

    Raises:
      InputError: if the method does not fit the base, or contradicts `initial`.
    """
    if saved:
        return _of_saved(config, given, saved)
    if initial:
        return _of_initial(config, given, base, initial, task_names)
    for member in members:
        flag = "--fuse: the member" if member.is_copied else "--stack: the adapter"
        with error_context(f"{flag} {preview(member.name)}"):
            check_base(member.config, base.fingerprint())
    depth = base.config.num_layers
    tuning = _tuning(config)
    tuning.check_depth(depth)
    if not tuning.needs_adapter:
        return Method(None, tuning, config.adapter_dtype)
    adapter = _adapter(config, members, task_names, base.config.hidden_size)
    _check_above_frozen(config, adapter)
    adapter = adapter.without_lowest(max(config.adapter_drop, config.frozen_layers), depth)
    if members and not adapter.borrowed_groups:
        adapter = on_top(adapter, *members)
    sizes = dataclasses.asdict(base.config)
    adapter.specs(sizes)  # Raises if it does not fit.
    if stack := of_kind(adapter, StackConfig):
        with error_context("--stack"):
            check_frozen(stack, tuning, sizes)
    return Method(adapter, tuning, config.adapter_dtype)


def _tuning(config: MethodConfig) -> Tuning:
    return Tuning(
        config.tuning,
        config.top_k,
        config.train_layer_norm,
        bool(config.train_pooler),  # None, for the base to decide, stays only without training.
        config.train_members,
        config.frozen_layers,
    )


# === The method of a saved adapter ===


def _of_saved(config: MethodConfig, given: Collection[str], saved: SavedAdapter) -> Method:
    ineffective = [f"--{name}" for name in with_role(Role.METHOD) if name in given]
    if ineffective:
        logging.warning("Not used, the saved adapter decides: %s", ", ".join(ineffective))
    adapter, tuning = contents.adapter_of(saved.config), contents.tuning_of(saved.config)
    return Method(adapter, tuning, config.adapter_dtype)


def _of_initial(
    config: MethodConfig,
    given: Collection[str],
    base: Base,
    initial: InitialAdapter,
    task_names: Sequence[str],
) -> Method:
    """Returns the method of the adapter to start from. Raises `InputError` for other settings."""
    saved = initial.saved
    check_base(saved.config, base.fingerprint())
    adapter = contents.adapter_of(saved.config)
    tuning = initial.tuning_with(config.train_layer_norm, bool(config.train_pooler))
    agreeing = _agreeing_settings(config, adapter, tuning, dataclasses.asdict(base.config))
    different = [
        f"--{name}={getattr(config, name)}"
        for name in with_role(Role.METHOD)
        if name in given and name not in agreeing
    ]
    if different:
        trained = [tuning.method, adapter.summary() if adapter else "no adapters"]
        if tuning.frozen_layers:
            trained.append(f"the lowest {tuning.frozen_layers} layers frozen")
        raise Mismatch(
            f"{', '.join(different)}: the adapter in --init_from={initial.folder} was trained "
            f"differently ({'; '.join(trained)}). Leave the flag out, or --init_from."
        )
    if adapter and adapter.task_names and task_names:
        known = adapter.task_names
        sources = {name: name if name in known else initial.task for name in task_names}
        adapter.values_for_tasks(saved.weights, sources)  # Raises if a task has no values.
        adapter = adapter.with_tasks(task_names)
    return Method(adapter, tuning, config.adapter_dtype)


def _agreeing_settings(
    config: MethodConfig, module: ModuleConfig | None, tuning: Tuning, sizes: Sizes
) -> set[str]:
    """Returns the names of the settings that agree with a saved adapter."""
    saved: dict[str, Any] = dataclasses.asdict(tuning) | {"tuning": tuning.method}
    saved |= multitask.settings_of(module)
    adapter = module.trained_part.single_task_config() if module else None
    agreeing = {name for name in saved if getattr(config, name, None) == saved[name]}
    if adapter is None:
        return agreeing
    if _is_named(config, adapter):
        agreeing.add("adapter")
    for setting, value in _adjustments(config).items():
        name = ADJUSTING[setting]
        is_said = value is not None or name == "layers"
        if is_said and name in adapter.adjustable:
            # Compared by variables: layers may be None or the indices of all.
            same = adapter.adjusted(**{name: value}).specs(sizes) == adapter.specs(sizes)
            agreeing |= {setting} if same else set()
    return agreeing


def _adjustments(config: MethodConfig) -> dict[str, Any]:
    """Dict from the settings that change a preset or file to their values; None: unchanged."""
    return {
        "adapter_size": config.adapter_size,
        "adapter_layers": _layers(config),
        "adapter_init_scale": config.adapter_init_scale,
    }


def _is_named(config: MethodConfig, adapter: ModuleConfig) -> bool:
    """Whether `--adapter` names an adapter; presets leave size, layers and initial scale open."""
    is_preset = config.adapter in PRESETS
    changed = [
        ADJUSTING[setting]
        for setting, value in _adjustments(config).items()
        if is_preset or setting == "adapter_layers" or value is not None
    ]
    named = _named(config.adapter).adjusted_like(adapter, changed)
    return adapter in (named, named.stored_config())


# === The module that the settings describe ===


def _adapter(
    config: MethodConfig, members: Sequence[Member], task_names: Sequence[str], hidden_size: int
) -> ModuleConfig:
    if config.tuning == "fusion":
        return _fusion(config, members)
    if config.tuning in HYPERFORMERS:
        return multitask.hyperformer(config, task_names, hidden_size, _layers(config))
    if config.tuning == "pals":
        return multitask.pals(config, task_names)
    adapter = _with_overrides(config)
    return multitask.per_task(adapter, task_names) if config.tuning == PER_TASK else adapter


def _fusion(config: MethodConfig, members: Sequence[Member]) -> ModuleConfig:
    if not members:
        raise Missing(
            "--tuning=fusion: there is no fusion to apply. Add --do_train, or the --adapter_dir of "
            "one."
        )
    with error_context("--fuse"):
        return make_fusion_config(members, config.fusion_cooling_steps)


def _with_overrides(config: MethodConfig) -> ModuleConfig:
    adapter = _named(config.adapter)
    given = {name: v for name, v in _adjustments(config).items() if v is not None}
    for setting, value in given.items():
        if ADJUSTING[setting] not in adapter.adjustable:
            raise Conflict(
                f"--adapter={config.adapter} has the kind {adapter.kind!r}, which --{setting} "
                f"cannot change. Leave out --{setting}."
            )
        adapter = adapter.adjusted(**{ADJUSTING[setting]: value})
    return adapter


def _named(adapter: str) -> ModuleConfig:
    """Returns the configuration of `--adapter`: a preset, or the content of a file."""
    if adapter in PRESETS:
        return PRESETS[adapter]
    if not storage.exists(adapter) or storage.isdir(adapter):
        raise InputError(
            f"--adapter must be one of {list(PRESETS)} or a JSON file. Received: {adapter!r}"
        )
    try:
        content = storage.read_bytes(adapter, LARGEST_FILE)
    except OSError as error:
        raise Unavailable(f"Cannot read --adapter={adapter}: {storage.reason(error)}") from error
    with error_context(f"--adapter={adapter}"):
        return ModuleConfig.from_json(content)


def _layers(config: MethodConfig) -> tuple[int, ...] | None:
    with error_context("--adapter_layers"):
        return parse_layers(config.adapter_layers)


def _check_above_frozen(config: MethodConfig, module: ModuleConfig) -> None:
    adapter = module.single_task_config()
    layers, frozen = getattr(adapter, "layers", None), config.frozen_layers
    if frozen and adapter and adapter.changes_embeddings:
        raise Conflict(
            f"--adapter={config.adapter} changes the embeddings, which are below the "
            f"--frozen_layers={frozen}. Leave out --frozen_layers, or choose another adapter."
        )
    if layers and min(layers) < frozen:
        source = "--adapter_layers" if config.adapter_layers else f"--adapter={config.adapter}"
        raise Conflict(
            f"{source} puts adapters into layers {', '.join(map(str, layers))}, but "
            f"--frozen_layers={frozen} freezes those below {frozen}. Choose higher layers."
        )
