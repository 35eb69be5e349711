"""The methods in AdapterHub's files: a row each, with gates, and several in a union."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.languages.invertible import InvertibleConfig
from adapter_bert_tf.adapters.methods.compacter import CompacterConfig
from adapter_bert_tf.adapters.methods.gated import GatedConfig
from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.methods.prefix import PrefixConfig
from adapter_bert_tf.adapters.methods.union import UnionConfig
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base.config import BertConfig
from adapter_bert_tf.errors import Unsupported
from adapter_bert_tf.interop.adapterhub_files import layout, lora, prefix
from adapter_bert_tf.interop.adapterhub_files.bottleneck import read_bottleneck, write_bottleneck
from adapter_bert_tf.interop.adapterhub_files.compacter import read_compacter, write_compacter
from adapter_bert_tf.interop.adapterhub_files.invertible import read_invertible, write_invertible
from adapter_bert_tf.interop.adapterhub_files.layout import require, require_sound
from adapter_bert_tf.sanitize import preview

Weights: TypeAlias = dict[str, np.ndarray]
Options: TypeAlias = Mapping[str, Any]
GATE = {"gate_kernel": "weight", "gate_bias": "bias"}


class Method(NamedTuple):
    """A method in AdapterHub's files.

    Args:
      configs: classes of our configurations.
      fits: function of the library's options: whether they are of this method.
      read: function of (options, version of the library or None, weights, name, number of layers),
        which removes the weights that it reads, to our configuration and weights.
      write: function of (configuration, weights, base, name) to options and weights.
      gate_path: function of (layer, place, name, beginning) to the library's path of a gate.
      before_gate: function of (configuration, weights) to those that the library's gates multiply.
    """

    configs: tuple[type[ModuleConfig], ...]
    fits: Callable[[Options], bool]
    read: Callable[[Options, str | None, Weights, str, int], tuple[ModuleConfig, Weights]]
    write: Callable[[Any, Mapping[str, np.ndarray], BertConfig, str], tuple[Options, Weights]]
    gate_path: Callable[[int, str, str, str], str]
    before_gate: Callable[[Any, Mapping[str, np.ndarray]], tuple[Any, Mapping[str, np.ndarray]]]


def _adapter_gate(layer: int, place: str, name: str, beginning: str) -> str:
    return f"{layout.module_path(layer, place, name, beginning)}.gate"


def _unchanged(adapter: Any, weights: Mapping[str, np.ndarray]) -> Any:
    return adapter, weights


METHODS = (
    Method(
        (AdapterConfig,),
        lambda hub: hub.get("architecture") is None and hub.get("phm_layer", False) is False,
        read_bottleneck,
        write_bottleneck,
        _adapter_gate,
        _unchanged,
    ),
    Method(
        (CompacterConfig,),
        lambda hub: hub.get("architecture") is None and hub.get("phm_layer") is True,
        lambda hub, version, tensors, name, depth: read_compacter(hub, tensors, name, depth),
        write_compacter,
        _adapter_gate,
        _unchanged,
    ),
    Method(
        (LoraConfig, Ia3Config),
        lambda hub: hub.get("architecture") == "lora",
        lora.read_lora,
        lambda adapter, weights, sizes, name: lora.write_lora(
            adapter, weights, sizes.num_layers, name
        ),
        lambda *place: f"{lora.module_path(*place)}.gate",
        lora.without_factor,
    ),
    Method(
        (PrefixConfig,),
        lambda hub: hub.get("architecture") == "prefix_tuning",
        lambda hub, version, tensors, name, depth: prefix.read_prefix(hub, tensors, name, depth),
        lambda adapter, weights, sizes, name: prefix.write_prefix(
            adapter, weights, sizes.num_layers, name
        ),
        prefix.gate_path,
        _unchanged,
    ),
)


def read_adapter(
    hub: Options, version: str | None, tensors: Weights, name: str, depth: int
) -> tuple[ModuleConfig, Weights]:
    """Reads an adapter's configuration and weights; see `Method.read`. Raises `InputError`."""
    is_union = hub.get("architecture") == "union"
    given: Any = hub.get("configs") if is_union else [hub]
    known = isinstance(given, list) and given and all(isinstance(m, dict) for m in given)
    require_sound(known, "configs must be a list of objects", given)
    if is_union:
        version = version or ""  # The library renames no activations in unions.
    members, weights = list[ModuleConfig](), Weights()
    for options in given:
        member, own = _read_method(options, version, tensors, name, depth)
        members += member.members if isinstance(member, UnionConfig) else [member]
        weights |= own
    require(not tensors, "some weights are not supported", sorted(tensors)[:5])
    return (members[0] if len(members) == 1 else UnionConfig(tuple(members))), weights


def _read_method(
    hub: Options, version: str | None, tensors: Weights, name: str, depth: int
) -> tuple[ModuleConfig, Weights]:
    """As `read_adapter`, of one method with or without gates."""
    method = next((method for method in METHODS if method.fits(hub)), None)
    if method is None:
        received = {key: hub.get(key) for key in ("architecture", "phm_layer")}
        raise _unsupported("imported", received)
    is_gated: Any = hub.get("use_gating", False)
    require(isinstance(is_gated, bool), "use_gating must be true or false", is_gated)
    beginning = layout.bert_prefix(tensors)
    adapter, weights = method.read(hub, version, tensors, name, depth)
    inverted = read_invertible(hub, tensors, name, getattr(adapter, "activation", ""))
    if inverted:
        require(not is_gated, "gates and an invertible part exclude each other", is_gated)
        return UnionConfig((inverted[0], adapter)), inverted[1] | weights
    if not is_gated:
        return adapter, weights
    gated = GatedConfig(adapter)
    for layer, place in _places(gated, weights):
        path, own = method.gate_path(layer, place, name, beginning), f"layer_{layer}/{place}"
        for part, theirs in GATE.items():
            weights[f"adapters/{own}/{part}"] = layout.pop_weight(tensors, f"{path}.{theirs}")
    return gated, weights


def _places(gated: GatedConfig, weights: Mapping[str, Any]) -> dict[tuple[int, str], None]:
    """The layer and the name of each gate, from the names of the weights that it multiplies."""
    names = [n.split("/") for n in weights if n.startswith("adapters/layer_")]
    return dict.fromkeys(
        (int(layer.removeprefix("layer_")), gated.place_of(place)) for _, layer, place, _ in names
    )


def write_adapter(
    adapter: ModuleConfig | None, weights: Mapping[str, np.ndarray], sizes: BertConfig, name: str
) -> tuple[Options, Weights]:
    """The library's options and weights of an adapter. Raises `InputError`."""
    if not isinstance(adapter, UnionConfig):
        return _write_method(adapter, weights, sizes, name)
    inverted = next((m for m in adapter.members if isinstance(m, InvertibleConfig)), None)
    members = [member for member in adapter.members if member is not inverted]
    holder = _holder(inverted, members) if inverted else None
    configs, tensors = list[Options](), Weights()
    for member in members:
        options, own = _write_method(member, weights, sizes, name)
        if inverted and member is holder:
            more, added = write_invertible(inverted, weights, name)
            options, own = {**options, **more}, own | added
        configs.append(options)
        tensors |= own
    (first, *others) = configs
    return ({"architecture": "union", "configs": configs} if others else first), tensors


def _holder(inverted: InvertibleConfig, members: Sequence[ModuleConfig]) -> AdapterConfig:
    """The bottleneck that an invertible part is an option of there. Raises `InputError`."""
    bottlenecks = (member for member in members if isinstance(member, AdapterConfig))
    fitting = [member for member in bottlenecks if member.activation == inverted.activation]
    require(
        fitting, "an invertible part must have the activation of a bottleneck", inverted.activation
    )
    return fitting[0]


def _write_method(
    adapter: ModuleConfig | None, weights: Mapping[str, np.ndarray], sizes: BertConfig, name: str
) -> tuple[Options, Weights]:
    """As `write_adapter`, of one method with or without gates."""
    gated = adapter if isinstance(adapter, GatedConfig) else None
    member = gated.member if gated else adapter
    method = next((m for m in METHODS if isinstance(member, m.configs)), None)
    if method is None:
        raise _unsupported("exported", adapter and adapter.to_dict())
    if gated is None:
        return method.write(member, weights, sizes, name)
    member, weights = method.before_gate(member, weights)
    options, tensors = method.write(member, weights, sizes, name)
    own_names = member.specs(vars(sizes))
    for layer, place in _places(gated, own_names):
        path = method.gate_path(layer, place, name, layout.BERT)
        for part, theirs in GATE.items():
            tensors[f"{path}.{theirs}"] = weights[f"adapters/layer_{layer}/{place}/{part}"].T
    return {**options, "use_gating": True}, tensors


def _unsupported(what: str, received: Any) -> Unsupported:
    return Unsupported(
        "AdapterHub: only bottleneck adapters, Compacter, LoRA, (IA)^3, prefixes and their unions "
        f"can be {what}. Received: {preview(received)}"
    )
