"""The methods in AdapterHub's files: a row each."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.methods.compacter import CompacterConfig
from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base.config import BertConfig
from adapter_bert_tf.errors import Unsupported
from adapter_bert_tf.interop.adapterhub_files.bottleneck import read_bottleneck, write_bottleneck
from adapter_bert_tf.interop.adapterhub_files.compacter import read_compacter, write_compacter
from adapter_bert_tf.interop.adapterhub_files.lora import read_lora, write_lora
from adapter_bert_tf.sanitize import preview

Weights: TypeAlias = dict[str, np.ndarray]
Options: TypeAlias = Mapping[str, Any]


class Method(NamedTuple):
    """A method in AdapterHub's files.

    Args:
      configs: classes of our configurations.
      fits: function of the library's options: whether they are of this method.
      read: function of (options, whether the file names a version, weights, name, number of
        layers), which removes the weights that it reads, to our configuration and weights.
      write: function of (configuration, weights, base, name) to options and weights.
    """

    configs: tuple[type[ModuleConfig], ...]
    fits: Callable[[Options], bool]
    read: Callable[[Options, bool, Weights, str, int], tuple[ModuleConfig, Weights]]
    write: Callable[[Any, Mapping[str, np.ndarray], BertConfig, str], tuple[Options, Weights]]


def _is_bottleneck(hub: Options) -> bool:
    return hub.get("architecture") is None and hub.get("phm_layer", False) is False


METHODS = (
    Method((AdapterConfig,), _is_bottleneck, read_bottleneck, write_bottleneck),
    Method(
        (CompacterConfig,),
        lambda hub: hub.get("architecture") is None and hub.get("phm_layer") is True,
        lambda hub, has_version, tensors, name, depth: read_compacter(hub, tensors, name, depth),
        write_compacter,
    ),
    Method(
        (LoraConfig, Ia3Config),
        lambda hub: hub.get("architecture") == "lora",
        lambda hub, has_version, tensors, name, depth: read_lora(hub, tensors, name, depth),
        lambda adapter, weights, sizes, name: write_lora(adapter, weights, sizes.num_layers, name),
    ),
)


def read_adapter(
    hub: Options, has_version: bool, tensors: Weights, name: str, depth: int
) -> tuple[ModuleConfig, Weights]:
    """Reads an adapter's configuration and weights; see `Method.read`. Raises `InputError`."""
    hub, is_union = _single_config(hub)
    method = next((method for method in METHODS if method.fits(hub)), None)
    if method is None:
        received = {key: hub.get(key) for key in ("architecture", "phm_layer")}
        raise _unsupported("imported", received)
    return method.read(hub, has_version or is_union, tensors, name, depth)


def _single_config(hub: Options) -> tuple[Options, bool]:
    """The options of a method, and whether it is the only member of a `ConfigUnion`."""
    members: Any = hub.get("configs")
    is_one = isinstance(members, list) and len(members) == 1 and isinstance(members[0], dict)
    is_union = is_one and hub.get("architecture") == "union"
    return (members[0] if is_union else hub), is_union


def write_adapter(
    adapter: ModuleConfig | None, weights: Mapping[str, np.ndarray], sizes: BertConfig, name: str
) -> tuple[Options, Weights]:
    """The library's options and weights of an adapter. Raises `InputError`."""
    method = next((m for m in METHODS if isinstance(adapter, m.configs)), None)
    if method is None:
        raise _unsupported("exported", adapter and adapter.to_dict())
    return method.write(adapter, weights, sizes, name)


def _unsupported(what: str, received: Any) -> Unsupported:
    return Unsupported(
        f"AdapterHub: only bottleneck adapters, Compacter, LoRA and (IA)^3 can be {what}. "
        f"Received: {preview(received)}"
    )
