"""Gates: numbers by hand, padding, places, analyses, what is refused."""

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.bottleneck_config import AdapterConfig
from adapter_bert_tf.adapters.methods.gated import GatedConfig
from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.methods.mixed import MixedModule
from adapter_bert_tf.adapters.methods.prefix import PrefixConfig
from adapter_bert_tf.adapters.methods.union import UnionConfig
from adapter_bert_tf.adapters.modules import AdapterModule, Projection
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.analysis.layers.removal import NOTHING, SUBLAYERS, span_outputs
from tests import support
from tests.adapters.encoder_test import SIZES, _randomize
from tests.refusals import raises_code

UNIPELT = PRESETS["unipelt"].adjusted(size=4)
SMALL = {"hidden_size": 2, "num_layers": 1, "inner_dim": 3}
LN3 = np.log(3.0)  # Of sigmoid 3/4.


def test_a_gate_by_hand():
    """Two word pieces with gates of 3/4 and 1/2, and one of padding: 5/8 of the change.

    x g is (ln 3, 0, -ln 3). B A x of the pieces is (2, 0) ln 3 and (0, 6), after alpha / rank of 2.
    """
    x = tf.constant([[[LN3, 0.0], [0.0, 3.0], [-LN3, 9.0]]], tf.float32)
    prefix = "adapters/layer_0/query"
    values = {
        f"{prefix}/lora_a": tf.eye(2),
        f"{prefix}/lora_b": tf.constant([[2.0, 0.0], [0.0, 2.0]]),
        f"{prefix}/gate_kernel": tf.constant([[1.0], [0.0]]),
        f"{prefix}/gate_bias": tf.zeros(1),
    }
    rows = {name: value[tf.newaxis] for name, value in values.items()}
    projection = Projection(0, "query", x, tf.ones([1, 3, 2]), tf.constant([[[1, 1, 0]]]))
    config = GatedConfig(LoraConfig(2, 2))
    for module in (config.module(values), config.module(rows, stacked=ROWS)):
        output = module.adapt_projection(projection)
        expected = [[1 + 2 * LN3 * 5 / 8, 1.0], [1.0, 1 + 6 * 5 / 8]]
        np.testing.assert_allclose(output[0, :2], expected, rtol=1e-6)


def test_positions_have_one_gate():
    """A zero kernel and a bias of ln 3: keys and values in front are 3/4 of the prefix."""
    config = GatedConfig(PrefixConfig(2, reparametrized=False))
    specs = config.specs(SMALL)
    values = {name: tf.ones(spec.shape) for name, spec in specs.items()}
    values["adapters/layer_0/prefix/gate_kernel"] *= 0.0
    values["adapters/layer_0/prefix/gate_bias"] *= LN3
    x = tf.ones([1, 1, 2])
    for name in ("key", "value"):
        projection = Projection(0, name, x, 5 * x, tf.ones([1, 1, 1]))
        output = config.module(values).adapt_projection(projection)
        np.testing.assert_allclose(output, [[[0.75] * 2] * 2 + [[5.0] * 2]], rtol=1e-6)


PLACES = {  # Configuration, and the sizes of its gates in the one layer.
    "projections": (LoraConfig(projections=("query", "output")), {"query": 2, "output": 3}),
    "an activation": (Ia3Config(("activation",)), {"activation": 3}),
    "sublayers": (AdapterConfig(1), {"attention": 2, "feed_forward": 2}),
    "positions": (PrefixConfig(1), {"prefix": 2}),
}


@pytest.mark.parametrize("case", PLACES)
def test_places(case):
    member, sizes = PLACES[case]
    specs = GatedConfig(member, 0.5).specs(SMALL)
    own = {name: spec for name, spec in specs.items() if name not in member.specs(SMALL)}
    assert {name: (spec.shape, spec.start) for name, spec in own.items()} == {
        f"adapters/layer_0/{place}/{name}": value
        for place, size in sizes.items()
        for name, value in {"gate_kernel": ((size, 1), 0.5), "gate_bias": ((1,), "zeros")}.items()
    }


@pytest.fixture(scope="module")
def encoder():
    encoder = new_encoder(SIZES, UNIPELT)
    _randomize(encoder)
    return encoder


def test_padding_changes_nothing(encoder):
    inputs = support.batch(rows=3, length=6)
    padded = {name: tf.pad(value, [[0, 0], [0, 5]]) for name, value in inputs.items()}
    expected = encoder(inputs, 1)["pooled_output"]
    np.testing.assert_allclose(encoder(padded, 1)["pooled_output"], expected, atol=1e-5)


def test_a_row_without_text_has_no_nan(encoder):
    inputs = {name: tf.zeros_like(value) for name, value in support.batch().items()}
    with tf.GradientTape() as tape:
        output = tf.reduce_sum(encoder(inputs, 1)["pooled_output"])
    gradients = tape.gradient(output, encoder.module_layer.trainable_variables)
    assert all(np.isfinite(value).all() for value in (output, *gradients) if value is not None)


def test_shares_of_a_batch():
    """As a fusion computes them: half of the rows with the module, half with the base."""
    encoder, inputs = new_encoder(SIZES, UnionConfig(UNIPELT.members[1:])), support.batch(rows=4)
    _randomize(encoder)
    mixed = MixedModule([encoder.module(), AdapterModule()])
    output = encoder.encoder(inputs, 1, module=mixed)["pooled_output"]
    np.testing.assert_allclose(output[:2], encoder(inputs, 1)["pooled_output"][:2], atol=1e-5)
    base = encoder.encoder(inputs, 1, module=AdapterModule())["pooled_output"]
    np.testing.assert_allclose(output[2:], base[2:], atol=1e-5)


def test_an_ablation(encoder):
    """Of several spans in one batch, with one position of the last block."""
    inputs = support.batch()
    outputs = span_outputs(encoder, inputs, SUBLAYERS, 1, 8)
    whole = encoder(inputs, 1)["sequence_output"]
    base = encoder.encoder(inputs, 1, module=AdapterModule())["sequence_output"]
    np.testing.assert_allclose(outputs[NOTHING], whole, atol=1e-5)
    np.testing.assert_allclose(outputs[0, 1], base, atol=1e-5)
    assert all(output.shape == whole.shape for output in outputs.values())


LORA = {"kind": "lora"}


@pytest.mark.parametrize(
    "values",
    [
        {"member": {"kind": "gated", "member": LORA}},
        {"member": {"kind": "union", "members": [LORA, {"kind": "ia3"}]}},
        {"member": {"kind": "per_task", "adapter": LORA, "tasks": ["a"]}},
        {"member": {"kind": "invertible"}},
        {"member": {"kind": "stack", "below": LORA, "above": LORA, "name": "a"}},
        {"member": None},
        {"member": LORA, "gate_init_scale": -1},
        {},
    ],
    ids=str,
)
def test_refused(values):
    with raises_code("invalid"):
        ModuleConfig.from_dict({"kind": "gated"} | values)


def test_settings_are_those_of_the_member():
    config = GatedConfig(LoraConfig(3), 0.1)
    assert config.adjusted(size=5, layers=(1,)) == GatedConfig(LoraConfig(5, layers=(1,)), 0.1)
    other = GatedConfig(LoraConfig(9), 0.7)
    assert config.adjusted_like(other, ["size"]) == GatedConfig(LoraConfig(9), 0.1)
    assert config.sizes(2) == (3, 3, 3, 3)
    assert UNIPELT.members[-1].member.bottleneck_size == 4
    with raises_code("conflict"):
        GatedConfig(Ia3Config()).adjusted(size=3)
    with raises_code("unsupported"):
        UnionConfig((config, PrefixConfig(2))).check_mergeable()
