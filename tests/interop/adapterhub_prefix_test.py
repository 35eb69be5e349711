"""Prefixes, gates and unions in files of AdapterHub: values by hand, and what is refused."""

import numpy as np
import pytest

from adapter_bert_tf.adapters.languages.invertible import InvertibleConfig
from adapter_bert_tf.adapters.methods.gated import GatedConfig
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.methods.prefix import PrefixConfig
from adapter_bert_tf.adapters.methods.union import UnionConfig
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.interop.adapterhub_files.methods import read_adapter, write_adapter
from adapter_bert_tf.interop.adapterhub_files.prefix import read_prefix
from tests.interop.hub_files import BASE_CONFIG, VERSION
from tests.refusals import raises_code

SELF = "prefix_tunings.a.self_prefix"
POOL, LAYER = f"bert.prefix_tuning.{SELF}", "bert.encoder.layer.0.attention.self."
COPY = f"{LAYER}prefix_tuning.pool.{SELF}"
FLAT = {"prefix_length": 2}
# One layer: keys and values of the first position, then of the second.
VALUES = np.array([1, 2, 10, 20, 3, 4, 30, 40], "f4")
KEYS, PAIRS = [[1, 2], [3, 4]], [[10, 20], [30, 40]]


def network(**changes):
    """tanh(E D) U + u with E = (0, 1), D = 1 and U = 0: every position has the values u."""
    parts = {
        "wte.weight": [[0.0], [1.0]],
        "control_trans.0.weight": [[1.0]],
        "control_trans.0.bias": [0.0],
        "control_trans.2.weight": [[0.0], [2.0]],
        "control_trans.2.bias": [5.0, 6.0],
    }
    return {f"{POOL}.{name}": np.asarray(v, "f4") for name, v in (parts | changes).items()}


READ = {  # Options, weights, and the keys and values of layer 0.
    "one copy": (FLAT, {f"{POOL}.control_trans": VALUES}, KEYS, PAIRS),
    "copies": (FLAT, {f"{p}.control_trans": VALUES for p in (POOL, COPY)}, KEYS, PAIRS),
    "of a bare model": (FLAT, {f"prefix_tuning.{SELF}.control_trans": VALUES}, KEYS, PAIRS),
    "an ejected one": (FLAT | {"flat": False}, {f"{COPY}.control_trans": VALUES}, KEYS, PAIRS),
    "a network": (FLAT, network(), [[5.0]] * 2, [[6.0], [6.0 + 2 * np.tanh(1.0)]]),
}


@pytest.mark.parametrize("case", READ)
def test_read(case):
    options, tensors, keys, values = READ[case]
    config, weights = read_prefix(options, dict(tensors), "a", 1)
    assert config == PrefixConfig(2, reparametrized=False)
    np.testing.assert_allclose(weights["adapters/layer_0/key/prefix"], keys)
    np.testing.assert_allclose(weights["adapters/layer_0/value/prefix"], values)


PREFIX = {"architecture": "prefix_tuning", **FLAT}
LORA = {"architecture": "lora", "attn_matrices": ["q"], "r": 1, "alpha": 5}
ONE = {f"{POOL}.control_trans": VALUES}
PFEIFFER = {"output_adapter": True, "non_linearity": "relu", "reduction_factor": 2}
BOTTLENECK = {
    f"bert.encoder.layer.0.output.adapters.a.{name}": np.ones(shape, "f4")
    for name, shape in (
        ("adapter_down.0.weight", (1, 2)),
        ("adapter_down.0.bias", (1,)),
        ("adapter_up.weight", (2, 1)),
        ("adapter_up.bias", (2,)),
    )
}
REFUSED = {  # Options, weights, and the code with the name of what is refused.
    "copies that differ": (PREFIX, ONE | {f"{COPY}.control_trans": 2 * VALUES}, "damaged: copies"),
    "no weights": (PREFIX, {}, "damaged: missing"),
    "half a network": (PREFIX, dict(list(network().items())[:3]), "damaged: wte"),
    "a network that does not fit": (
        PREFIX,
        network(**{"control_trans.0.bias": [0.0, 0.0]}),
        "damaged: fit",
    ),
    "another length": (PREFIX | {"prefix_length": 3}, ONE, "damaged: 3 positions"),
    "no length": (PREFIX | {"prefix_length": "2"}, ONE, "invalid: length"),
    "another activation": (PREFIX | {"non_linearity": "relu"}, network(), "unsupported: relu"),
    "gates of keys and of values": (
        PREFIX | {"use_gating": True, "shared_gating": False},
        ONE,
        "unsupported: shared_gating",
    ),
    "no gate": (PREFIX | {"use_gating": True}, ONE, "damaged: prefix_gates"),
    "a gate that is a number": (PREFIX | {"use_gating": 1}, ONE, "unsupported: use_gating"),
    "a gate too many": (PREFIX, ONE | {f"{LAYER}gate.weight": VALUES}, "unsupported: gate"),
    "gates of (IA)^3": (
        LORA | {"composition_mode": "scale", "use_gating": True},
        {},
        "unsupported: gates",
    ),
    "another method in a union": (
        {"architecture": "union", "configs": [PREFIX, {"architecture": "prompt_tuning"}]},
        ONE,
        "unsupported: prompt_tuning",
    ),
    "a union in a union": (
        {"architecture": "union", "configs": [{"architecture": "union", "configs": [PREFIX]}]},
        ONE,
        "unsupported: union",
    ),
    "another invertible part": (
        PFEIFFER | {"inv_adapter": "glow"},
        BOTTLENECK,
        "unsupported: nice",
    ),
    "half a factor": (
        PFEIFFER | {"inv_adapter": "nice", "inv_adapter_reduction_factor": 2.5},
        BOTTLENECK,
        "unsupported: whole",
    ),
    "an invertible part without weights": (
        PFEIFFER | {"inv_adapter": "nice", "inv_adapter_reduction_factor": 2},
        BOTTLENECK,
        "damaged: invertible",
    ),
    "a union of nothing": ({"architecture": "union", "configs": []}, ONE, "damaged: configs"),
    "a union of names": ({"architecture": "union", "configs": ["lora"]}, ONE, "damaged: configs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    options, tensors, said = REFUSED[case]
    with raises_code(said):
        read_adapter(options, VERSION, dict(tensors), "a", 1)


def made(config):
    """Random weights of a configuration, by common name."""
    rng = np.random.default_rng(0)
    specs = config.specs(vars(BASE_CONFIG))
    return {name: rng.normal(size=spec.shape).astype("f4") for name, spec in specs.items()}


def test_a_gate_takes_the_place_of_the_factor():
    """Written as B times alpha / rank; read with alpha = rank."""
    own = "adapters/layer_0/query"
    lora = GatedConfig(LoraConfig(2, 6, projections=("query",), layers=(0,)))
    config = UnionConfig((GatedConfig(PrefixConfig(2, reparametrized=False, layers=(0,))), lora))
    weights = made(config)
    options, tensors = write_adapter(config, weights, BASE_CONFIG, "a")
    assert all(member["use_gating"] for member in options["configs"])
    tensors = {name: np.asarray(value) for name, value in tensors.items()}
    read, values = read_adapter(options, VERSION, tensors, "a", BASE_CONFIG.num_layers)
    assert read.members[1] == GatedConfig(LoraConfig(2, 2, projections=("query",), layers=(0,)))
    expected = weights | {f"{own}/lora_b": 3 * weights[f"{own}/lora_b"]}
    assert values.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-6, err_msg=name)


BEFORE, LAST = LoraConfig(2), PrefixConfig(2, reparametrized=False)
INVERTIBLE = InvertibleConfig(2, "relu", identity_init=False)
PFEIFFER_CONFIG = PRESETS["pfeiffer"].adjusted(size=5)
INVERTED = {  # Members, and those that are read back.
    "first": ((INVERTIBLE, PFEIFFER_CONFIG, BEFORE), (INVERTIBLE, PFEIFFER_CONFIG, BEFORE)),
    "among others": (
        (BEFORE, INVERTIBLE, LAST, PFEIFFER_CONFIG),
        (BEFORE, LAST, INVERTIBLE, PFEIFFER_CONFIG),
    ),
    "alone": ((INVERTIBLE, PFEIFFER_CONFIG), (INVERTIBLE, PFEIFFER_CONFIG)),
}


@pytest.mark.parametrize("case", INVERTED)
def test_an_invertible_part_is_an_option_of_its_bottleneck(case):
    members, expected = INVERTED[case]
    config = UnionConfig(members)
    weights = made(config)
    options, tensors = write_adapter(config, weights, BASE_CONFIG, "a")
    tensors = {name: np.asarray(value) for name, value in tensors.items()}
    read, values = read_adapter(options, VERSION, tensors, "a", BASE_CONFIG.num_layers)
    assert read == UnionConfig(expected)
    assert values.keys() == weights.keys()
    for name, value in weights.items():
        np.testing.assert_array_equal(values[name], value, err_msg=name)


def test_an_invertible_part_without_a_bottleneck():
    config = UnionConfig((InvertibleConfig(2, "tanh"), BEFORE, PFEIFFER_CONFIG))
    with raises_code("unsupported", "activation"):
        write_adapter(config, made(config), BASE_CONFIG, "a")
