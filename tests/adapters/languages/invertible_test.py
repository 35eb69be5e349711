"""The coupling of invertible adapters equals AdapterHub's, and is undone by its inverse."""

import json

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.languages.invertible import PLACE, InvertibleConfig
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.adapters.task_encoder import new_encoder
from tests import support
from tests.adapters.encoder_test import SIZES
from tests.refusals import raises_code

CASES = json.loads((support.GOLDEN.parent / "madx" / "nice.json").read_text())
ACTIVATIONS = {"relu": "relu", "gelu": "gelu_erf", "swish": "swish"}
PARTS = {"0": "down", "2": "up"}  # Numbers of the dense layers in `torch.nn.Sequential`.


def module(case):
    values = {}
    for name, value in case["weights"].items():
        half, number, kind = name.split(".")
        variable = f"{PARTS[number]}_{'kernel' if kind == 'weight' else 'bias'}"
        values[f"{PLACE}/{half}/{variable}"] = np.float32(value).T
    config = InvertibleConfig(
        reduction=case["inv_adapter_reduction_factor"],
        activation=ACTIVATIONS[case["non_linearity"]],
    )
    shapes = {n: spec.shape for n, spec in config.specs({"hidden_size": case["channels"]}).items()}
    assert {name: value.shape for name, value in values.items()} == shapes
    return config.module(values)


@pytest.mark.parametrize("name", CASES)
def test_the_coupling_of_adapterhub(name):
    case = CASES[name]
    x = tf.constant(case["x"], tf.float32)
    coupling = module(case)
    np.testing.assert_allclose(coupling.adapt_embeddings(x), case["forward"], atol=1e-5)
    np.testing.assert_allclose(coupling.invert(x), case["reverse"], atol=1e-5)
    np.testing.assert_allclose(coupling.invert(coupling.adapt_embeddings(x)), x, atol=1e-5)


def test_float32_whatever_the_inputs_are():
    case = CASES["relu_8"]
    output = module(case).adapt_embeddings(tf.constant(case["x"], tf.bfloat16))
    assert output.dtype == tf.float32


@pytest.mark.parametrize("preset", ["pfeiffer+inv", "houlsby+inv"])
def test_a_new_one_starts_as_the_base(preset):
    encoder, inputs = new_encoder(SIZES, PRESETS[preset].adjusted(size=4)), support.batch()
    output = encoder(inputs)["sequence_output"]
    np.testing.assert_array_equal(output, encoder.encoder(inputs)["sequence_output"])
    x = tf.random.normal([2, 3, SIZES["hidden_size"]])
    np.testing.assert_array_equal(encoder.module().invert(x), x)


def test_each_row_is_undone_with_its_own_values():
    config, rng = InvertibleConfig(), np.random.default_rng(0)
    specs = config.specs({"hidden_size": 6})
    values = {n: rng.normal(size=(2, *s.shape)).astype("f4") for n, s in specs.items()}
    x = tf.constant(rng.normal(size=(2, 3, 6)), tf.float32)
    rows = config.module(values, stacked=ROWS)
    changed = rows.adapt_embeddings(x)
    np.testing.assert_allclose(rows.invert(changed), x, atol=1e-4)
    second = config.module({name: value[1] for name, value in values.items()})
    np.testing.assert_allclose(changed[1:], second.adapt_embeddings(x[1:]), atol=1e-5)


@pytest.mark.parametrize("fields", [{"reduction": 0}, {"activation": "sine"}, {"init_scale": -1}])
def test_invalid_fields(fields):
    with raises_code("invalid"):
        InvertibleConfig(**fields)


def test_a_reduction_to_nothing():
    with raises_code("invalid"):
        InvertibleConfig(reduction=5).specs({"hidden_size": 8})
