"""Changes of projections: against numpy, for [CLS] alone, by layer, and without cost for others."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.attention import Attention
from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.methods.mixed import MixedModule
from adapter_bert_tf.adapters.modules import PROJECTIONS, AdapterModule, WrappedModule
from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.adapters.variable_specs import DENSE_PATHS
from adapter_bert_tf.analysis.layers.removal import AblatedModule
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support
from tests.adapters.encoder_test import SIZES, _numpy_forward, _randomize
from tests.adapters.toy_methods import ToyLowRank, ToyPrefix, ToyRescaling
from tests.refusals import raises_code
from tests.training import tiny

NAMES = [name for names in PROJECTIONS.values() for name in names]
BLOCK = "bert/encoder/layer_0"
# The dense layers of the base with the same effect as a factor on a projection.
SCALED = {
    "query": ("attention/self/query/kernel", "attention/self/query/bias"),
    "key": ("attention/self/key/kernel", "attention/self/key/bias"),
    "value": ("attention/self/value/kernel", "attention/self/value/bias"),
    "attention_output": ("attention/output/dense/kernel", "attention/output/dense/bias"),
    "intermediate": ("intermediate/dense/kernel", "intermediate/dense/bias"),
    "activation": ("output/dense/kernel",),
    "output": ("output/dense/kernel", "output/dense/bias"),
}
METHODS = {"rescaling": ToyRescaling(), "low rank": ToyLowRank(), "prefix": ToyPrefix()}


class Doubling(AdapterModule):
    """Doubles the projections of some names, and records the shapes that it sees."""

    def __init__(self, *names):
        super().__init__()
        self.names, self.shapes = names, {}

    def projections(self, layer):
        return self.names

    def adapt_projection(self, projection):
        self.shapes[projection.name] = (projection.input.shape[-1], projection.output.shape[-1])
        return 2 * projection.output


@pytest.fixture(scope="module")
def one_layer():
    """(encoder of one layer without adapters, its values)."""
    encoder = AdapterBertEncoder(**SIZES | {"num_layers": 1})
    return encoder, _randomize(encoder)


@pytest.mark.parametrize("output_range", [None, 1])
@pytest.mark.parametrize("name", NAMES)
def test_a_factor_on_a_projection_equals_numpy(name, output_range, one_layer):
    encoder, values = one_layer
    scaled = {f"{BLOCK}/{variable}" for variable in SCALED[name]}
    doubled = {n: 2 * value if n in scaled else value for n, value in values.items()}
    sequence, pooled = _numpy_forward(support.batch(rows=4), doubled, None, heads=2)
    output = encoder(support.batch(rows=4), output_range, module=Doubling(name))
    np.testing.assert_allclose(output["sequence_output"], sequence[:, :output_range], atol=1e-5)
    np.testing.assert_allclose(output["pooled_output"], pooled, atol=1e-5)


@pytest.mark.parametrize("name", [None, *support.seldom(PRESETS, ("houlsby", "lora", "unipelt"))])
def test_chosen_positions_are_those_of_all(name):
    """In any order, and with repetitions."""
    config = PRESETS[name] if name else None
    if name and "size" in config.adjustable:
        config = config.adjusted(size=4)
    encoder = new_encoder(SIZES, config)
    _randomize(encoder)
    inputs, places = support.batch(rows=4), np.array([[2, 0, 5], [1, 1, 0], [0, 3, 4], [6, 2, 2]])
    expected = np.take_along_axis(
        encoder(inputs)["sequence_output"].numpy(), places[..., np.newaxis], 1
    )
    found = encoder(inputs, tf.constant(places, tf.int32))["sequence_output"]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_module_sees_the_widths_of_the_base(one_layer):
    module = Doubling(*NAMES)
    one_layer[0](support.batch(), module=module)
    widths = {"intermediate": (16, 32), "activation": (32, 32), "output": (32, 16)}
    assert module.shapes == {name: widths.get(name, (16, 16)) for name in NAMES}


def folded(method, values):
    """The values of a base of one layer that computes what a method computes beside it."""
    base = {name: value for name, value in values.items() if name.startswith("bert/")}
    own = {n.removeprefix("adapters/layer_0/"): v for n, v in values.items() if n not in base}
    prefix = f"{BLOCK}/attention/self"
    if method == "low rank":
        for name in ("query", "value"):
            change = own[f"{name}/down"] @ own[f"{name}/up"]
            base[f"{prefix}/{name}/kernel"] = base[f"{prefix}/{name}/kernel"] + change.reshape(
                16, 2, 8
            )
    else:
        for name in ("key", "value"):
            scale = own[f"{name}/scale"].reshape(2, 8)
            for variable in ("kernel", "bias"):
                base[f"{prefix}/{name}/{variable}"] = base[f"{prefix}/{name}/{variable}"] * scale
        kernel = f"{BLOCK}/output/dense/kernel"
        base[kernel] = own["activation/scale"][:, None] * base[kernel]
    return base


@pytest.mark.parametrize("output_range", [None, 1])
@pytest.mark.parametrize("method", ["rescaling", "low rank"])
def test_a_method_equals_numpy(method, output_range):
    encoder = new_encoder(SIZES | {"num_layers": 1}, METHODS[method])
    values = _randomize(encoder)
    inputs = support.batch(rows=4)
    sequence, pooled = _numpy_forward(inputs, folded(method, values), None, heads=2)
    output = encoder(inputs, output_range)
    np.testing.assert_allclose(output["sequence_output"], sequence[:, :output_range], atol=1e-5)
    np.testing.assert_allclose(output["pooled_output"], pooled, atol=1e-5)


@pytest.mark.parametrize("output_range", [None, 1])
def test_a_prefix_equals_positions_of_the_input(output_range):
    """Keys and values of the first word pieces, given as a prefix to the others."""
    encoder = AdapterBertEncoder(**SIZES | {"num_layers": 1})
    values = _randomize(encoder)
    inputs = {name: value[:1] for name, value in support.batch(length=9).items()}
    hidden = encoder.embed(inputs, AdapterModule()).numpy()[0]
    prefix = {
        f"adapters/layer_0/{name}/prefix": tf.constant(
            hidden[6:] @ values[f"{BLOCK}/attention/self/{name}/kernel"].reshape(16, 16)
            + values[f"{BLOCK}/attention/self/{name}/bias"].reshape(16)
        )
        for name in ("key", "value")
    }
    short = {name: value[:, :6] for name, value in inputs.items()}
    output = encoder(short, output_range, module=ToyPrefix().module(prefix))["sequence_output"]
    expected = encoder(inputs)["sequence_output"][:, : output_range or 6]
    np.testing.assert_allclose(output, expected, atol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_cls_alone_equals_the_full_computation(method, compiled):
    encoder = new_encoder(SIZES, METHODS[method])
    _randomize(encoder)
    run = tf.function(encoder.__call__, reduce_retracing=True) if compiled else encoder
    for rows, length in ((4, 7), (2, 9)):
        inputs = support.batch(rows=rows, length=length)
        full = run(inputs, None)["pooled_output"]
        np.testing.assert_allclose(run(inputs, 1)["pooled_output"], full, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_gradients_reach_every_variable(method):
    encoder = new_encoder(SIZES, METHODS[method])
    _randomize(encoder)
    variables = encoder.module_layer.named_variables()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(support.batch(), 1)["pooled_output"][:, :3] ** 2)
    gradients = tape.gradient(loss, list(variables.values()))
    without = [n for n, g in zip(variables, gradients, strict=True) if g is None or not np.any(g)]
    assert without == []


def test_products_in_bfloat16_are_near_those_in_float32():
    inputs, outputs = support.batch(rows=4), {}
    for dtype in (None, "bfloat16"):
        encoder = new_encoder(SIZES | {"product_dtype": dtype}, ToyLowRank())
        _randomize(encoder, scale=0.1)
        outputs[dtype] = [encoder(inputs, n)["pooled_output"] for n in (None, 1)]
    np.testing.assert_allclose(*outputs["bfloat16"], atol=1e-5)
    np.testing.assert_allclose(outputs["bfloat16"][0], outputs[None][0], atol=2e-2)
    assert np.abs(outputs["bfloat16"][0] - outputs[None][0]).max() > 1e-5


def test_a_policy_of_bfloat16_keeps_the_dtypes():
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        encoder = AdapterBertEncoder(**SIZES)
        seen = {}

        class Watching(Doubling):
            def adapt_projection(self, projection):
                seen[projection.name] = (projection.input.dtype, projection.output.dtype)
                return tf.cast(projection.output, tf.float32)

        output = encoder(support.batch(), 1, module=Watching(*NAMES))["sequence_output"]
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")
    assert output.dtype == tf.float32
    dtypes = dict.fromkeys(NAMES, (tf.bfloat16, tf.bfloat16))
    assert seen == dtypes | {"activation": (tf.float32, tf.float32)}  # As in Model Garden.


def test_layers_above_frozen_ones():
    encoder = new_encoder(SIZES | {"frozen_layers": 1}, ToyLowRank(first_layer=1))
    _randomize(encoder)
    inputs = support.batch()
    known = inputs | {"frozen_output": encoder.frozen_output(inputs)}
    expected = encoder.encoder(inputs, 1, module=encoder.module(), frozen_layers=0)
    for output in (encoder(inputs, 1), encoder(known, 1)):
        np.testing.assert_allclose(output["pooled_output"], expected["pooled_output"], atol=1e-6)


def test_projections_in_frozen_layers_are_refused():
    model = Classifier(new_encoder(SIZES | {"frozen_layers": 1}, ToyLowRank()), 2)
    with raises_code("conflict", "frozen_layers=1"):
        select_trained(model, Tuning(frozen_layers=1))


@pytest.mark.parametrize("module", [PRESETS["houlsby"], Doubling(*PROJECTIONS["feed_forward"])])
def test_attention_without_changes_takes_the_fast_path(module):
    """Also in a layer of its own: which projections change is known for each block."""
    encoder = AdapterBertEncoder(**SIZES)
    if not isinstance(module, AdapterModule):
        module = new_encoder(SIZES, module).module()
    with mock.patch.object(Attention, "call_adapted", side_effect=AssertionError):
        encoder(support.batch(), 1, module=module)
        one = new_encoder(SIZES | {"num_layers": 2}, ToyLowRank(first_layer=1))
        one.encoder.blocks[0]((tf.zeros([1, 2, 16]), tf.ones([1, 1, 2])), module=one.module())
    with mock.patch.object(Attention, "call_for_first", side_effect=AssertionError):
        one(support.batch(), 1)


CHANGES = {
    "lora": LoraConfig(2, projections=tuple(DENSE_PATHS), alphas={"layer_1/query": 3.0}),
    "lora of a layer": LoraConfig(2, layers=(1,)),
    "lora with dropout": LoraConfig(2, projections=tuple(DENSE_PATHS), dropout=0.5),
    "ia3": Ia3Config(tuple(NAMES)),
    "ia3 of queries": Ia3Config(("query", "attention_output"), layers=(0,)),
}


@pytest.mark.parametrize("output_range", [None, 1])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("config", CHANGES.values(), ids=CHANGES)
def test_changed_weights_equal_changed_outputs(config, training, output_range):
    """Values and gradients; attention takes the fast path."""
    encoder = tiny.without_dropout(new_encoder(SIZES, config))
    _randomize(encoder)
    module = encoder.module()

    def run(module):
        with tf.GradientTape() as tape:
            inputs = support.batch()
            output = encoder.encoder(inputs, output_range, module=module, training=training)
            total = tf.reduce_sum(tf.sin(output["pooled_output"]))
        trained = [encoder.named_variables()[name] for name in config.specs(SIZES)]
        return [output["sequence_output"], *tape.gradient(total, trained)]

    outputs = run(WrappedModule(module))
    with mock.patch.object(Attention, "call_adapted", side_effect=AssertionError):
        ours = run(module)
    for actual, expected in zip(ours, outputs, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def operations(encoder, module):
    """The types of the operations of a compiled pass."""
    run = tf.function(lambda inputs: encoder(inputs, 1, module=module)["pooled_output"])
    graph = run.get_concrete_function(support.batch()).graph
    return [operation.type for operation in graph.get_operations()]


def test_modules_without_projections_add_no_operations():
    encoder = AdapterBertEncoder(**SIZES)
    assert operations(encoder, WrappedModule(AdapterModule())) == operations(encoder, None)
    assert len(operations(encoder, Doubling("output"))) > len(operations(encoder, None))


def test_an_unknown_projection_is_refused():
    with pytest.raises(ValueError, match=r"Received: \['querry'\]"):
        AdapterBertEncoder(**SIZES)(support.batch(), module=Doubling("querry"))


def test_modules_share_a_pass():
    encoder, inputs = AdapterBertEncoder(**SIZES), support.batch(rows=2)
    modules = [Doubling("key", "output"), AdapterModule(), Doubling("value")]
    rows = {name: tf.tile(value, [3, 1]) for name, value in inputs.items()}
    output = encoder(rows, 1, module=MixedModule(modules))["pooled_output"]
    expected = [encoder(inputs, 1, module=module)["pooled_output"] for module in modules]
    np.testing.assert_allclose(output, np.concatenate(expected), atol=1e-5)


def test_an_ablation_removes_changes_of_projections():
    module = AblatedModule(Doubling(*NAMES), ["attention"])
    assert module.projections(0) == set(PROJECTIONS["feed_forward"])
