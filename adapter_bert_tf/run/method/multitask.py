"""From flags to the parts of several tasks that are trained together."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.hyperformer import REDUCTION, HyperFormerConfig
from adapter_bert_tf.adapters.methods.projected_attention import PalsConfig
from adapter_bert_tf.config.run_flags import Part
from adapter_bert_tf.errors import InputError

# The flag that each field of a configuration comes from.
HYPERFORMER = {
    "task_embedding_size": "task_embedding_size",
    "projector_size": "projector_size",
    "projected_size": "projected_size",
    "projector": "task_projector",
    "conditional_norm": "conditional_layer_norm",
    "start": "hyper_init",
}
PALS = {"size": "pal_size", "num_heads": "pal_heads"}


def hyperformer(
    flags: Part,
    names: Sequence[str],
    hidden_size: int,
    layers: tuple[int, ...] | None,
) -> HyperFormerConfig:
    """A HyperFormer, or HyperFormer++. Raises `InputError`.

    Args:
      flags: those of the method.
      names: of the tasks.
      hidden_size: of the base.
      layers: with adapters; None for all.
    """
    size = flags.adapter_size or max(hidden_size // REDUCTION, 1)
    adapter = AdapterConfig(size, layers=layers, normalize_output=True)
    values = {field: getattr(flags, flag) for field, flag in HYPERFORMER.items()}
    shared = flags.tuning == "hyperformer++"
    found = HyperFormerConfig(adapter, tuple(names), shared=shared, **values)
    if shared and found.vector_size == 1:
        raise InputError(
            "--projected_size of hyperformer++ is 2 or more: the LayerNorm after the projector "
            "leaves nothing of one number, so all tasks would have the same adapters. "
            f"Received: {found.vector_size}"
        )
    return found


def pals(flags: Part, names: Sequence[str]) -> PalsConfig:
    """Projected attention layers. Raises `InputError`."""
    try:
        return PalsConfig(
            tuple(names), **{field: getattr(flags, flag) for field, flag in PALS.items()}
        )
    except InputError as error:
        raise InputError(f"--pal_size and --pal_heads: {error}") from error


def as_flags(flags: Part, parts: Any) -> dict[str, bool]:
    """Whether each of these flags says what the parts of saved tasks are."""
    fields: Mapping[str, str] = {}
    if isinstance(parts, HyperFormerConfig):
        fields = HYPERFORMER
    if isinstance(parts, PalsConfig):
        fields = PALS
    return {flag: getattr(flags, flag) == getattr(parts, field) for field, flag in fields.items()}
