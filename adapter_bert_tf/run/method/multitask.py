"""Modules of several tasks that are trained together, from settings, and settings of modules."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.methods.hyperformer import REDUCTION, HyperFormerConfig
from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
from adapter_bert_tf.adapters.methods.projected_attention import PalsConfig
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.config.sections.model import MethodConfig
from adapter_bert_tf.errors import InputError, error_context

# Dict from a field of the module's configuration to its setting.
HYPERFORMER = {
    "task_embedding_size": "task_embedding_size",
    "projector_size": "projector_size",
    "projected_size": "projected_size",
    "projector": "task_projector",
    "conditional_norm": "conditional_layer_norm",
    "start": "hyper_init",
}
PALS = {"size": "pal_size", "num_heads": "pal_heads"}
SETTINGS: dict[str, Mapping[str, str]] = {
    HyperFormerConfig.kind: HYPERFORMER,
    PalsConfig.kind: PALS,
    FusionConfig.kind: {"cooling_steps": "fusion_cooling_steps"},
}


def hyperformer(
    config: MethodConfig,
    task_names: Sequence[str],
    hidden_size: int,
    layers: tuple[int, ...] | None,
) -> HyperFormerConfig:
    """Returns a HyperFormer or HyperFormer++ (Mahabadi et al. 2021). Raises `InputError`."""
    size = config.adapter_size or max(hidden_size // REDUCTION, 1)
    adapter = AdapterConfig(size, layers=layers, normalize_output=True)
    values = {field: getattr(config, name) for field, name in HYPERFORMER.items()}
    shared = config.tuning == "hyperformer++"
    hyper = HyperFormerConfig(adapter, tuple(task_names), shared=shared, **values)
    if shared and hyper.vector_size == 1:
        raise InputError(
            "--projected_size of hyperformer++ must be 2 or more, because a LayerNorm makes a "
            f"single number constant. Received: {hyper.vector_size}"
        )
    return hyper


def pals(config: MethodConfig, task_names: Sequence[str]) -> PalsConfig:
    """Returns projected attention layers (Stickland and Murray 2019). Raises `InputError`."""
    values = {field: getattr(config, name) for field, name in PALS.items()}
    with error_context("--pal_size and --pal_heads"):
        return PalsConfig(tuple(task_names), **values)


def per_task(adapter: ModuleConfig, task_names: Sequence[str]) -> PerTaskConfig:
    """Returns an adapter for each of several tasks. Raises `InputError`."""
    return PerTaskConfig(adapter, tuple(task_names))


def settings_of(module: ModuleConfig | None) -> dict[str, Any]:
    """Returns the settings that describe a saved module."""
    fields = SETTINGS.get(module.kind, {}) if module else {}
    return {name: getattr(module, field) for field, name in fields.items()}
