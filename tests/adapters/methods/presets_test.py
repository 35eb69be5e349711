"""Every preset has what a bottleneck has: counts, gradients, rows, XLA, dtypes, fewer layers."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.modules import AdapterModule, WrappedModule
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.task_encoder import new_encoder
from tests import support
from tests.adapters.encoder_test import SIZES, _randomize
from tests.refusals import raises_code

SMALL = {
    name: config.adjusted(size=4) if "size" in config.adjustable else config
    for name, config in PRESETS.items()
}
# Sizes of BERT-base and of all-MiniLM-L6-v2.
BASES = {
    "bert": {"hidden_size": 768, "num_layers": 12, "inner_dim": 3072},
    "minilm": {"hidden_size": 384, "num_layers": 6, "inner_dim": 1536},
}


def bottleneck(d, m=64):
    return 2 * m * d + d + m


def coupling(d):
    half = d // 2
    return 2 * (half * (half // 2) + half // 2 + half // 2 * half + half)


def prefix(d, layers, length, inner=512):
    return length * d + (d + 1) * inner + 2 * layers * (inner + 1) * d


def unipelt_rest(d):
    """LoRA, an adapter and four gates in a layer."""
    return 2 * 8 * (d + d) + bottleneck(d, 48) + 4 * (d + 1)


# The formulas of docs/methods.md: functions of the hidden size d and of the number of layers, with
# an inner size of 4 d.
COUNTS = {
    "houlsby": lambda d, layers: 2 * layers * bottleneck(d),
    "adapter_bert": lambda d, layers: 2 * layers * bottleneck(d),
    "pfeiffer": lambda d, layers: layers * bottleneck(d),
    "pfeiffer+inv": lambda d, layers: coupling(d) + layers * bottleneck(d),
    "houlsby+inv": lambda d, layers: coupling(d) + 2 * layers * bottleneck(d),
    "seq_bn_inv": lambda d, layers: coupling(d) + layers * bottleneck(d),
    "double_seq_bn_inv": lambda d, layers: coupling(d) + 2 * layers * bottleneck(d),
    "parallel": lambda d, layers: layers * bottleneck(d),
    "scaled_parallel": lambda d, layers: layers * bottleneck(d),
    "lora": lambda d, layers: 2 * layers * 8 * (d + d),
    "ia3": lambda d, layers: layers * (d + d + 4 * d),
    "prefix": lambda d, layers: prefix(d, layers, 20),
    "compacter": lambda d, layers: 4**3 + 2 * layers * 3 * (d + 24),
    "compacter++": lambda d, layers: 4**3 + layers * 3 * (d + 24),
    "mam": lambda d, layers: prefix(d, layers, 30) + layers * bottleneck(d, 512),
    "unipelt": lambda d, layers: prefix(d, layers, 10) + layers * unipelt_rest(d),
}
STORED = {
    "prefix": lambda d, layers: 2 * layers * 20 * d,
    "mam": lambda d, layers: 2 * layers * 30 * d + layers * bottleneck(d, 512),
    "unipelt": lambda d, layers: 2 * layers * 10 * d + layers * unipelt_rest(d),
}


def size(config, base):
    return sum(int(np.prod(spec.shape)) for spec in config.specs(BASES[base]).values())


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("preset", PRESETS)
def test_parameters_by_formula(preset, base):
    config, formula = PRESETS[preset], COUNTS[preset]
    sizes = BASES[base]["hidden_size"], BASES[base]["num_layers"]
    assert size(config, base) == formula(*sizes)
    assert size(config.stored_config(), base) == STORED.get(preset, formula)(*sizes)


@pytest.fixture(scope="module")
def encoders():
    """Function of a preset's name and whether it is random to an encoder with it."""
    made = {}

    def encoder_of(preset):
        if preset not in made:
            made[preset] = new_encoder(SIZES, SMALL[preset])
            _randomize(made[preset])
        return made[preset]

    return encoder_of


# Some configurations have two names.
@pytest.fixture(params={config: name for name, config in reversed(PRESETS.items())}.values())
def preset(request):
    return request.param


def test_a_config_read_back_is_equal(preset):
    for config in (PRESETS[preset], SMALL[preset], PRESETS[preset].stored_config()):
        assert ModuleConfig.from_json(config.to_json()) == config
        hash(config)
        assert config.summary() and "\n" not in config.summary()


def test_a_summary_names_the_layers(preset):
    """Cards, lists and messages show it."""
    assert ", layers" not in PRESETS[preset].summary()
    if "layers" in PRESETS[preset].adjustable:
        assert ", layers 1, 2" in PRESETS[preset].adjusted(layers=(1, 2)).summary()
    assert ", layers 1" in PRESETS[preset].without_lowest(1, 2).summary()


def test_cls_alone_equals_the_full_computation(preset, encoders):
    encoder = encoders(preset)
    run = tf.function(encoder.__call__, reduce_retracing=True)
    for rows, length in ((4, 7), (2, 9)):
        inputs = support.batch(rows=rows, length=length)
        full = encoder(inputs)["pooled_output"]
        np.testing.assert_allclose(run(inputs, 1)["pooled_output"], full, atol=1e-5)


def test_gradients_reach_every_variable(preset, encoders):
    encoder = encoders(preset)
    variables = encoder.module_layer.named_variables()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(support.batch(), 1)["pooled_output"][:, :3] ** 2)
    gradients = tape.gradient(loss, list(variables.values()))
    without = [n for n, g in zip(variables, gradients, strict=True) if g is None or not np.any(g)]
    assert without == []


def test_each_row_has_values_of_its_own(preset, encoders):
    encoder, inputs = encoders(preset), support.batch(rows=3)
    config = SMALL[preset]
    rng = np.random.default_rng(0)
    named = encoder.module_layer.named_variables()
    tasks = [
        {name: v + rng.normal(size=v.shape).astype("f4") / 4 for name, v in named.items()}
        for _ in range(3)
    ]
    stacked = {name: tf.stack([values[name] for values in tasks]) for name in named}

    def pooled(module):
        return encoder.encoder(inputs, 1, module=module)["pooled_output"]

    mixed = pooled(config.module(stacked, stacked=ROWS))
    alone = [pooled(config.module(values))[row] for row, values in enumerate(tasks)]
    np.testing.assert_allclose(mixed, tf.stack(alone), atol=1e-5)
    assert np.abs(alone[0] - pooled(config.module(tasks[1]))[0]).max() > 1e-3


def test_the_stored_values_compute_the_same(preset, encoders):
    encoder, config = encoders(preset), SMALL[preset]
    values = config.stored_values(encoder.module_layer.named_variables())
    shapes = {name: spec.shape for name, spec in config.stored_config().specs(SIZES).items()}
    assert {name: tuple(value.shape) for name, value in values.items()} == shapes
    module = config.stored_config().module(values)
    output = encoder.encoder(support.batch(), 1, module=module)["pooled_output"]
    expected = encoder(support.batch(), 1)["pooled_output"]
    np.testing.assert_allclose(output, expected, atol=1e-6)


def test_xla_computes_the_same(preset, encoders):
    encoder, inputs = encoders(preset), support.batch()
    run = tf.function(lambda inputs: encoder(inputs, 1)["pooled_output"], jit_compile=True)
    np.testing.assert_allclose(run(inputs), encoder(inputs, 1)["pooled_output"], atol=1e-5)


def test_a_policy_of_bfloat16(preset):
    """Near float32, with float32 outputs and variables."""
    outputs = []
    for policy in ("float32", "mixed_bfloat16"):
        tf_keras.mixed_precision.set_global_policy(policy)
        try:
            encoder = new_encoder(SIZES, SMALL[preset])
            _randomize(encoder, scale=0.1)
            outputs.append(encoder(support.batch(rows=4), 1)["sequence_output"])
        finally:
            tf_keras.mixed_precision.set_global_policy("float32")
        assert {v.dtype for v in encoder.module_layer.variables} == {tf.float32}
    assert outputs[1].dtype == tf.float32
    np.testing.assert_allclose(outputs[1], outputs[0], atol=5e-2)
    assert np.abs(outputs[1] - outputs[0]).max() > 1e-6


def test_fewer_layers(preset):
    """The lowest are left out, as by --adapter_drop; frozen layers compute the base's."""
    config = SMALL[preset].without_lowest(1, SIZES["num_layers"])
    layers = {spec.layer for spec in config.specs(SIZES).values()}
    assert layers - {None} == set(range(1, SIZES["num_layers"]))
    encoder = new_encoder(SIZES | {"frozen_layers": 1}, config)
    _randomize(encoder)
    inputs = support.batch()
    known = inputs | {"frozen_output": encoder.frozen_output(inputs)}
    expected = encoder.encoder(inputs, 1, module=encoder.module(), frozen_layers=0)
    for output in (encoder(inputs, 1), encoder(known, 1)):
        np.testing.assert_allclose(output["pooled_output"], expected["pooled_output"], atol=1e-6)
    if "layers" in config.adjustable:
        assert {s.layer for s in config.adjusted(layers=(0,)).specs(SIZES).values()} <= {0, None}
    with raises_code("invalid"):
        config.without_lowest(SIZES["num_layers"], SIZES["num_layers"])


def test_modules_can_be_wrapped(preset, encoders):
    """As ablations do it."""
    encoder = encoders(preset)
    module = WrappedModule(encoder.module())
    output = encoder.encoder(support.batch(), 1, module=module)["pooled_output"]
    expected = encoder(support.batch(), 1)["pooled_output"]
    np.testing.assert_allclose(output, expected, atol=1e-5)
    base = encoder.encoder(support.batch(), 1, module=AdapterModule())["pooled_output"]
    assert np.abs(output - base).max() > 1e-3
