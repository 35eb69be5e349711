"""LoRA: shapes, factors, the start, numbers by hand, what is refused."""

import json

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.modules import PROJECTIONS, Projection
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.adapters.variable_specs import DENSE_PATHS
from tests.adapters.encoder_test import SIZES as ENCODER_SIZES
from tests.refusals import raises_code

MASK = tf.ones([1, 1, 1])
SIZES = {"hidden_size": 16, "num_layers": 2, "inner_dim": 32}


def test_shapes_by_projection():
    config = LoraConfig(3, projections=tuple(DENSE_PATHS), layers=(1,))
    shapes = {name: spec.shape for name, spec in config.specs(SIZES).items()}
    widths = {"intermediate": (16, 32), "output": (32, 16)}
    assert shapes == {
        f"adapters/layer_1/{name}/{variable}": shape
        for name in DENSE_PATHS
        for variable, shape in {
            "lora_a": (widths.get(name, (16, 16))[0], 3),
            "lora_b": (3, widths.get(name, (16, 16))[1]),
        }.items()
    }


FACTORS = {  # Configuration, and the rank and the factor of the queries of layers 0 and 1.
    "usual": (LoraConfig(), (8, 1.0), (8, 1.0)),
    "another rank": (LoraConfig(16), (16, 0.5), (16, 0.5)),
    "stabilized": (LoraConfig(16, rank_stabilized=True), (16, 2.0), (16, 2.0)),
    "by place": (
        LoraConfig(4, 8, ranks={"layer_1/query": 2}, alphas={"layer_0/query": 1}),
        (4, 0.25),
        (2, 4.0),
    ),
}


@pytest.mark.parametrize("case", FACTORS)
def test_ranks_and_factors(case):
    config, *expected = FACTORS[case]
    assert [(config.rank_of(i, "query"), config.factor_of(i, "query")) for i in (0, 1)] == expected
    assert ModuleConfig.from_json(config.to_json()) == config
    hash(config)


def test_places_without_effect_are_left_out():
    ranks = {"layer_0/query": 2, "layer_1/key": 2, "layer_1/value": 8, "layer_1/query": 3}
    assert LoraConfig(layers=(1,), ranks=ranks).ranks == (("layer_1/query", 3),)


def test_another_size_is_that_of_all_places():
    config = LoraConfig(alpha=4, ranks={"layer_0/query": 2}).adjusted(size=3, layers=(0,))
    assert config == LoraConfig(3, 4, layers=(0,))


def test_a_projection_by_hand():
    """With x = (1, 2), A = (1, 1), B = (3, 4): A x = 3, so 6 / 1 * 3 B = (54, 72) is added."""
    x, output = tf.constant([[[1.0, 2.0]]]), tf.constant([[[10.0, 20.0]]])
    prefix = "adapters/layer_0/query"
    values = {
        f"{prefix}/lora_a": tf.constant([[1.0], [1.0]]),
        f"{prefix}/lora_b": tf.constant([[3.0, 4.0]]),
    }
    config, projection = LoraConfig(1, 6), Projection(0, "query", x, output, MASK)
    rows = {name: value[tf.newaxis] for name, value in values.items()}
    for module in (config.module(values), config.module(rows, stacked=ROWS)):
        np.testing.assert_array_equal(module.adapt_projection(projection), [[[64.0, 92.0]]])


def test_dropout_is_that_of_the_input():
    config = LoraConfig(1, 1, dropout=0.5)
    names = [f"adapters/layer_0/{name}" for name in ("query", "value")]
    one_layer = SIZES | {"num_layers": 1}
    assert config.dropout_rates(one_layer) == dict.fromkeys(names, 0.5)
    assert LoraConfig().dropout_rates(one_layer) == {}
    ones = {f"{name}/lora_{part}": tf.ones([1, 1]) for name in names for part in "ab"}
    module = config.module(ones, {names[0]: lambda x: 7 * x})
    projection = Projection(0, "query", tf.ones([1, 1, 1]), tf.zeros([1, 1, 1]), MASK)
    assert module.adapt_projection(projection).numpy() == 7


def test_it_starts_as_the_base_with_a_uniform_first_kernel():
    encoder = new_encoder(ENCODER_SIZES, LoraConfig(64))
    values = encoder.module_layer.named_variables()
    for name, value in values.items():
        if name.endswith("lora_b"):
            assert not np.any(value)
        else:  # Uniform on +-1/sqrt(16), whose standard deviation is 0.25 / sqrt(3).
            assert 0.24 < np.abs(value).max() <= 0.25
            assert np.std(value) == pytest.approx(0.25 / 3**0.5, rel=0.05)
    scaled = new_encoder(ENCODER_SIZES, LoraConfig(64, init_scale=1e-3))
    kernel = scaled.module_layer.named_variables()["adapters/layer_0/query/lora_a"]
    assert 0 < np.abs(kernel).max() < 2.1e-3


REFUSED = [
    {"rank": 0},
    {"rank": 2.5},
    {"rank": 10**12},
    {"alpha": "8"},
    {"alpha": float("nan")},
    {"dropout": 1.0},
    {"projections": []},
    {"projections": ["query", "query"]},
    {"projections": ["activation"]},
    {"projections": "query"},
    {"projections": [["query"]]},
    {"rank_stabilized": 1},
    {"init_scale": -1},
    {"layers": [-1]},
    {"ranks": {"query": 4}},
    {"ranks": {"layer_1": 4}},
    {"ranks": {"layer_01/query": 4}},
    {"ranks": {"layer_²/query": 4}},
    {"ranks": {"layer_" + "9" * 5000 + "/query": 4}},
    {"ranks": {"1/query": 4}},
    {"ranks": {"layer_1/activation": 4}},
    {"ranks": {"layer_1/query": 0}},
    {"ranks": [4]},
    {"ranks": "layer_1/query"},
    {"ranks": {"layer_1/query": [4]}},
    {"alphas": {"layer_1/query": None}},
    {"alphas": 3},
    {"use_dora": True},
]


@pytest.mark.parametrize("values", REFUSED, ids=str)
def test_wrong_values_are_refused(values):
    with raises_code("invalid", "Received"):
        ModuleConfig.from_json(json.dumps({"kind": "lora"} | values))


@pytest.mark.parametrize(
    "config", [LoraConfig(layers=(2,)), LoraConfig(ranks={"layer_2/query": 1})]
)
def test_layers_of_another_base_are_refused(config):
    with raises_code("invalid", "below 2"):
        config.specs(SIZES)


def test_every_projection_with_a_dense_layer_can_change():
    names = [name for names in PROJECTIONS.values() for name in names]
    assert [name for name in names if name not in DENSE_PATHS] == ["activation"]
