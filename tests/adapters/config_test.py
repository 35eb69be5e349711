"""`AdapterConfig`: presets, JSON round trip, what is refused."""

import dataclasses
import json

import pytest

from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig, parse_layers
from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
from adapter_bert_tf.adapters.registry import ModuleConfig
from tests.refusals import raises_code

SIZES = {"hidden_size": 16, "num_layers": 2}


@pytest.mark.parametrize(
    "config",
    [
        *PRESETS.values(),
        AdapterConfig(8, layers=(1, 0, 1)),
        AdapterConfig(8, normalize_output=True),
        AdapterConfig(8, layer_sizes={1: 3, 0: 300}),
    ],
)
def test_json_round_trip(config):
    assert ModuleConfig.from_json(config.to_json()) == config


VARIATIONS = {
    "two layers deep": {"depth": 2},
    "scaled by 4": {"scale": 4.0},
    "reading the block's LayerNorm": {"normalize_input": True},
    "a LayerNorm at its input": {"layer_norm": True},
    "a LayerNorm at its output": {"normalize_output": True},
    "parallel": {"placement": "parallel"},
    "layers 1": {"layers": (1,)},
}


@pytest.mark.parametrize("text", VARIATIONS)
def test_a_summary_names_what_differs(text):
    assert text in AdapterConfig(8, **VARIATIONS[text]).summary()
    assert text not in AdapterConfig(8).summary()


LAYER_SIZES = {  # What is given, and the size in layers 0 and 1.
    "none": ({}, (8, 8)),
    "one": ({"1": 3}, (8, 3)),
    "numbers": ({1: 3, 0: 300}, (300, 3)),
    "the usual size": ({"1": 8}, (8, 8)),
}


@pytest.mark.parametrize("case", LAYER_SIZES)
def test_another_size_for_each_layer(case):
    given, sizes = LAYER_SIZES[case]
    config = AdapterConfig(8, layer_sizes=given)
    kernels = {n: s.shape for n, s in config.specs(SIZES).items() if n.endswith("down_kernel")}
    assert kernels == {
        f"adapters/layer_{i}/{sublayer}/down_kernel": (16, size)
        for i, size in enumerate(sizes)
        for sublayer in ("attention", "feed_forward")
    }
    assert (config == AdapterConfig(8)) == (sizes == (8, 8))
    hash(config)


def test_sizes_of_layers_without_adapters_are_left_out():
    config = AdapterConfig(8, layers=(1,), layer_sizes={0: 4, 1: 2})
    assert config == AdapterConfig(8, layers=(1,), layer_sizes={1: 2})
    assert AdapterConfig(8, layer_sizes={0: 4}).without_lowest(1, 2) == AdapterConfig(
        8, layers=(1,)
    )
    with raises_code("invalid", "below 2"):
        AdapterConfig(8, layer_sizes={2: 4}).specs(SIZES)


def test_houlsby_is_adapter_bert_but_for_the_start():
    original = {
        "bottleneck_size": 64,
        "activation": "gelu",
        "init_scale": 1e-3,
        "identity_init": False,
        "dropout": 0.0,
        "scale": 1.0,
        "sublayers": ("attention", "feed_forward"),
        "layers": None,
        "placement": "serial",
        "normalize_input": False,
        "layer_norm": False,
        "depth": 1,
        "normalize_output": False,
        "layer_sizes": (),
    }
    assert dataclasses.asdict(PRESETS["adapter_bert"]) == original
    start = {"init_scale": 0.02, "identity_init": True}
    assert dataclasses.asdict(PRESETS["houlsby"]) == original | start


def test_what_came_later_is_written_only_where_it_is_used():
    """So the files of an adapter say the same as those of earlier versions."""
    assert not {"normalize_output", "layer_sizes"} & AdapterConfig().to_dict().keys()
    assert AdapterConfig(layer_sizes={1: 3}).to_dict()["layer_sizes"] == {"1": 3}
    assert AdapterConfig(normalize_output=True).to_dict()["normalize_output"] is True
    inside = PerTaskConfig(AdapterConfig(), ("a",)).to_dict()["adapter"]
    assert inside == AdapterConfig().to_dict()


@pytest.mark.parametrize(
    ("config", "zeros"),
    [
        (AdapterConfig(4), "up_kernel"),
        (AdapterConfig(4, normalize_output=True), "output_layer_norm_gamma"),
    ],
    ids=["plain", "normalized"],
)
def test_where_an_adapter_starts_as_the_identity(config, zeros):
    """By one variable, so that the others have gradients."""
    specs = {n.rsplit("/", 1)[1]: s for n, s in config.specs(SIZES).items()}
    kernels = {"down_kernel": 0.02, "up_kernel": 0.02, "output_layer_norm_gamma": "ones"}
    expected = {n: v for n, v in kernels.items() if n in specs} | {zeros: "zeros"}
    assert {n: specs[n].start for n in expected} == expected
    assert all(spec.start == "zeros" for name, spec in specs.items() if name not in expected)


def test_pfeiffer_has_one_adapter_a_layer_after_the_feed_forward_sublayer():
    config = PRESETS["pfeiffer"]
    assert (config.sublayers, config.activation, config.normalize_input) == (
        ("feed_forward",),
        "relu",
        True,
    )


REFUSED = [
    {"bottleneck_size": 0},
    {"bottleneck_size": 2.5},
    {"bottleneck_size": True},
    {"activation": "mish"},
    {"init_scale": -1.0},
    {"init_scale": "big"},
    {"dropout": 1.0},
    {"sublayers": []},
    {"sublayers": ["embedding"]},
    {"layers": [-1]},
    {"layers": ["top"]},
    {"sublayers": "attention"},
    {"sublayers": ["attention", "attention"]},
    {"layers": []},
    {"layers": "01"},
    {"layers": [[0]]},
    {"scale": "4"},
    {"scale": float("nan")},
    {"scale": 1e300},
    {"scale": None},
    {"scale": 10**290},
    {"init_scale": 10**290},
    {"init_scale": 1e300},
    {"dropout": float("nan")},
    {"dropout": 10**290},
    {"bottleneck_size": 10**290},
    {"bottleneck_size": 10**12},
    {"layers": [10**290]},
    {"kind": ["bottleneck"]},
    {"dropout": "much"},
    {"normalize_input": "no"},
    {"identity_init": 1},
    {"layer_norm": None},
    {"normalize_output": 0},
    {"placement": "above"},
    {"depth": 0},
    {"depth": 3},
    {"placement": "parallel", "normalize_input": True},
    {"layer_sizes": [8, 8]},
    {"layer_sizes": {"top": 8}},
    {"layer_sizes": {"-1": 8}},
    {"layer_sizes": {"9" * 30: 8}},
    {"layer_sizes": {"0": 0}},
    {"layer_sizes": {"0": 2.5}},
    {"layer_sizes": {"0": 4, "00": 8}},
    {"layer_sizes": "0:4"},
    {"size": 64},
    {"bottleneck_size": 64, "reduction_factor": 16},
]


@pytest.mark.parametrize("values", REFUSED, ids=str)
def test_wrong_values_and_unknown_keys_are_refused(values):
    with raises_code("invalid", "Received"):
        AdapterConfig.from_json(json.dumps(values))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "3", "[" * 200_000, "9" * 5000, b"\xff", '{"scale": ' + "9" * 400 + "}"],
    ids=lambda text: repr(text[:20]),
)
def test_what_is_no_json_object_is_refused(text):
    with raises_code("invalid"):
        AdapterConfig.from_json(text)


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PRESETS["houlsby"].bottleneck_size = 3


@pytest.mark.parametrize(
    ("text", "layers"),
    [("", None), ("3", (3,)), ("6-11", (6, 7, 8, 9, 10, 11)), ("0,2,4-5", (0, 2, 4, 5))],
)
def test_layer_ranges(text, layers):
    assert parse_layers(text) == layers


@pytest.mark.parametrize(
    "text", ["a", "1-", "5-4", "1,,2", "-1", "0-9999999999", "9" * 5000, "²", "3-256"]
)
def test_wrong_layer_ranges(text):
    with raises_code("invalid"):
        parse_layers(text)


def test_layers_must_exist():
    with raises_code("invalid", "below 2"):
        AdapterConfig(layers=(1, 2)).layer_indices(2)
