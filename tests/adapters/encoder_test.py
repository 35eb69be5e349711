"""The encoder: against numpy by hand, against Model Garden, and its own properties."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from official.nlp.modeling import networks

from adapter_bert_tf.adapters.attention import Attention
from adapter_bert_tf.adapters.base_layers import Dense
from adapter_bert_tf.adapters.block import AdapterEncoderBlock
from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.task_encoder import TaskEncoder, new_encoder
from adapter_bert_tf.base import load_base
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.training.dropout import seed_dropout
from tests import support
from tests.refusals import raises_code
from tests.support import GOLDEN

SIZES = {
    "vocab_size": len(support.VOCABULARY),
    "hidden_size": 16,
    "num_layers": 2,
    "num_attention_heads": 2,
    "inner_dim": 32,
    "max_sequence_length": 24,
}
VARIANTS = {
    **{name: config for name, config in PRESETS.items() if isinstance(config, AdapterConfig)},
    "parallel, both sublayers": AdapterConfig(placement="parallel"),
    "LayerNorm": AdapterConfig(layer_norm=True),
    "two layers": AdapterConfig(depth=2),
    "tanh": AdapterConfig(activation="tanh"),
    "attention only": AdapterConfig(sublayers=("attention",)),
    "top layer": AdapterConfig(layers=(1,)),
    "relu, dropout": AdapterConfig(activation="relu", dropout=0.5),
}


def _randomize(encoder, seed=1, scale=0.3):
    rng = np.random.default_rng(seed)
    for name, variable in encoder.named_variables().items():
        noise = rng.normal(size=variable.shape) * scale
        variable.assign(noise + (1.0 if name.endswith("gamma") else 0.0))
    return {name: variable.numpy() for name, variable in encoder.named_variables().items()}


# --- A forward pass in numpy, written from the paper's Figure 2. ---


def _gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATION = {"gelu": _gelu, "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}


def _layer_norm(x, v, prefix):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-12) * v[f"{prefix}/gamma"] + v[f"{prefix}/beta"]


def _dense(x, v, prefix):
    kernel = v[f"{prefix}/kernel"]
    return x @ kernel.reshape(x.shape[-1], -1) + v[f"{prefix}/bias"].reshape(-1)


def _attention(x, mask, v, prefix, heads):
    batch, length, hidden = x.shape
    q, k, value = (
        _dense(x, v, f"{prefix}/self/{name}").reshape(batch, length, heads, -1)
        for name in ("query", "key", "value")
    )
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(hidden // heads)
    scores = np.where(mask[:, None, None, :] == 1, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mixed = np.einsum("bhqk,bkhd->bqhd", weights, value).reshape(batch, length, hidden)
    kernel = v[f"{prefix}/output/dense/kernel"].reshape(hidden, hidden)
    return mixed @ kernel + v[f"{prefix}/output/dense/bias"]


def _adapted(output, x, v, config, sublayer, norm):
    name = f"adapters/layer_0/{sublayer}"
    if f"{name}/down_kernel" not in v:
        return output
    source = x if config.placement == "parallel" else output
    if config.normalize_input:
        source = _layer_norm(x + output, v, norm)
    if config.layer_norm:
        source = _layer_norm(
            source,
            {"n/gamma": v[f"{name}/layer_norm_gamma"], "n/beta": v[f"{name}/layer_norm_beta"]},
            "n",
        )
    narrow = ACTIVATION[config.activation](
        source @ v[f"{name}/down_kernel"] + v[f"{name}/down_bias"]
    )
    if config.depth == 2:
        narrow = ACTIVATION[config.activation](
            narrow @ v[f"{name}/middle_kernel"] + v[f"{name}/middle_bias"]
        )
    return output + config.scale * (narrow @ v[f"{name}/up_kernel"] + v[f"{name}/up_bias"])


def _numpy_forward(inputs, v, config, heads):
    ids, types = inputs["input_word_ids"], inputs["input_type_ids"]
    x = (
        v["bert/embeddings/word_embeddings"][ids]
        + v["bert/embeddings/token_type_embeddings"][types]
        + v["bert/embeddings/position_embeddings"][: ids.shape[1]]
    )
    x = _layer_norm(x, v, "bert/embeddings/LayerNorm")
    block = "bert/encoder/layer_0"
    output = _attention(x, inputs["input_mask"], v, f"{block}/attention", heads)
    norm = f"{block}/attention/output/LayerNorm"
    x = _layer_norm(x + _adapted(output, x, v, config, "attention", norm), v, norm)
    output = _dense(_gelu(_dense(x, v, f"{block}/intermediate/dense")), v, f"{block}/output/dense")
    norm = f"{block}/output/LayerNorm"
    x = _layer_norm(x + _adapted(output, x, v, config, "feed_forward", norm), v, norm)
    return x, np.tanh(_dense(x[:, 0], v, "bert/pooler/dense"))


@pytest.mark.parametrize(
    "name",
    [name for name, config in VARIANTS.items() if config.layers is None and not config.dropout],
)
def test_one_layer_equals_numpy(name):
    config = VARIANTS[name]
    encoder = new_encoder(SIZES | {"num_layers": 1}, config)
    values = _randomize(encoder)
    inputs = support.batch(rows=4)
    sequence, pooled = _numpy_forward(inputs, values, config, heads=2)
    output = encoder(inputs)
    np.testing.assert_allclose(output["sequence_output"], sequence, atol=1e-5)
    np.testing.assert_allclose(output["pooled_output"], pooled, atol=1e-5)


def test_without_adapters_it_is_model_gardens_encoder(tmp_path):
    ours = AdapterBertEncoder(**SIZES)
    theirs = networks.BertEncoderV2(type_vocab_size=2, **SIZES)
    theirs(theirs.inputs)
    _randomize(ours)
    status = tf.train.Checkpoint(ours).write(str(tmp_path / "tiny"))
    tf.train.Checkpoint(theirs).read(status).assert_existing_objects_matched()
    inputs = support.batch()
    for key in ("sequence_output", "pooled_output"):  # Of up to 3, whose last digit is 2e-7.
        np.testing.assert_allclose(ours(inputs)[key], theirs(inputs)[key], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", VARIANTS)
def test_at_init_it_is_the_base(name, tiny_base_folder):
    base = load_base(tiny_base_folder)
    inputs = support.batch()
    bare, adapted = base.build_encoder()(inputs), base.build_encoder(VARIANTS[name])(inputs)
    # adapter-bert's start is near the identity only; the tiny base's outputs are large.
    atol = 3e-3 if name == "adapter_bert" else 0
    for key, value in bare.items():
        np.testing.assert_allclose(adapted[key], value, rtol=0, atol=atol)


@pytest.mark.parametrize("name", VARIANTS)
def test_with_zero_init_it_is_the_base_exactly(name, tiny_base_folder):
    base = load_base(tiny_base_folder)
    inputs = support.batch()
    values = VARIANTS[name].__dict__ | {"init_scale": 0.0, "identity_init": False}
    adapted = base.build_encoder(AdapterConfig(**values))
    for key, value in base.build_encoder()(inputs).items():
        np.testing.assert_array_equal(adapted(inputs)[key], value)


def test_only_the_first_position_is_computed_and_equal():
    encoder = new_encoder(SIZES, AdapterConfig(bottleneck_size=4))
    _randomize(encoder)
    inputs = support.batch()
    full, first = encoder(inputs), encoder(inputs, output_range=1)
    assert first["sequence_output"].shape == (3, 1, 16)
    np.testing.assert_allclose(first["pooled_output"], full["pooled_output"], atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_one_query_reads_what_all_would(training, monkeypatch):
    """With dropout of the same masks, and the gradients of all weights."""
    encoder = new_encoder(SIZES, AdapterConfig(bottleneck_size=4))
    _randomize(encoder)
    model = Classifier(encoder, 2)
    seed_dropout(model, 1, tf.Variable(0.0))

    def outputs():
        with tf.GradientTape() as tape:
            logits = model(support.batch(), training=training)
            loss = tf.reduce_sum(logits * [1.0, -2.0])
        gradients = tape.gradient(loss, model.named_variables())
        return {"logits": logits} | {k: tf.convert_to_tensor(v) for k, v in gradients.items()}

    quick = outputs()
    plain = lambda self, x, everything, mask, *_: self(x, everything, attention_mask=mask)  # noqa: E731
    monkeypatch.setattr(Attention, "call_for_first", plain)
    for name, value in outputs().items():
        np.testing.assert_allclose(quick[name], value, 1e-4, 1e-5, err_msg=name)


def test_padding_changes_nothing():
    encoder = new_encoder(SIZES, AdapterConfig(bottleneck_size=4))
    _randomize(encoder)
    inputs = support.batch()
    padded = {name: np.pad(x, ((0, 0), (0, 5))) for name, x in inputs.items()}
    np.testing.assert_allclose(
        encoder(padded)["pooled_output"], encoder(inputs)["pooled_output"], atol=1e-5
    )


def test_adapters_have_their_own_variables_in_every_sublayer():
    encoder = new_encoder(SIZES, AdapterConfig(bottleneck_size=4))
    named = encoder.module_layer.named_variables()
    assert len(named) == 2 * 2 * 4
    assert len({variable.ref() for variable in named.values()}) == len(named)
    assert named["adapters/layer_1/attention/down_kernel"].shape == (16, 4)
    kernels = [v.numpy() for n, v in named.items() if n.endswith("down_kernel")]
    assert len({kernel.tobytes() for kernel in kernels}) == 4


def test_every_variable_has_a_name():
    encoder = new_encoder(SIZES, AdapterConfig(bottleneck_size=4))
    named = {variable.ref() for variable in encoder.named_variables().values()}
    assert named == {variable.ref() for variable in encoder.variables}


def test_kernels_are_drawn_from_a_truncated_normal():
    config = PRESETS["adapter_bert"]
    encoder = new_encoder(SIZES | {"hidden_size": 128}, config)
    values = encoder.module_layer.named_variables()
    for name in ("down_kernel", "up_kernel"):
        kernel = values[f"adapters/layer_0/attention/{name}"].numpy()
        # Cut at two sigma: what lies outside is drawn again.
        assert np.abs(kernel).max() <= 2e-3
        assert kernel.std() == pytest.approx(0.88e-3, rel=0.05)
    assert not values["adapters/layer_0/attention/down_bias"].numpy().any()


def test_config_round_trip_rebuilds_the_encoder():
    encoder = new_encoder(SIZES, VARIANTS["top layer"])
    twin = TaskEncoder.from_config(encoder.get_config())
    assert twin.get_config() == encoder.get_config()
    assert twin.named_variables().keys() == encoder.named_variables().keys()


def test_the_page_of_training_shows_the_block_as_it_is():
    root = GOLDEN.parent.parent.parent
    code = re.findall(
        r"```python\n(output = .*?)```", (root / "docs/training.md").read_text(), re.S
    )
    block = [
        line.strip()
        for line in (root / "adapter_bert_tf/adapters/block.py").read_text().splitlines()
    ]
    assert code and "\n".join(block).count(code[0].strip()) == 1


def test_more_word_pieces_than_positions_are_refused():
    """Also while a step is traced, where TensorFlow makes the error one of its own."""
    encoder = AdapterBertEncoder(**SIZES)
    longest = SIZES["max_sequence_length"]
    inputs = {name: tf.zeros([2, longest + 1], tf.int32) for name in encoder.inputs}
    for called, error in ((encoder, InputError), (tf.function(encoder), Exception)):
        with pytest.raises(error, match=f"positions for {longest} .* of {longest + 1}"):
            called(inputs)


@pytest.mark.parametrize("outputs", [0, -1, "two", 2.0])
def test_a_head_of_no_labels_is_refused(outputs):
    with raises_code("invalid", "1 or more outputs, one a label"):
        Classifier(AdapterBertEncoder(**SIZES), outputs)


def test_a_new_encoder_is_built():
    encoder = new_encoder(SIZES, AdapterConfig(bottleneck_size=4))
    expected = sum(int(tf.size(variable)) for variable in encoder.variables)
    assert encoder.count_params() == expected
    bare = AdapterBertEncoder(**SIZES)
    assert bare.count_params() == sum(int(tf.size(variable)) for variable in bare.variables)


def test_a_block_by_itself_creates_its_variables():
    block = AdapterEncoderBlock(num_attention_heads=2, inner_dim=8, inner_activation="relu")
    x = tf.random.stateless_normal([2, 3, 4], [0, 1])
    assert block((x, tf.ones([2, 1, 3]))).shape == [2, 3, 4] and len(block.weights) == 16


def test_a_number_of_positions_may_be_of_numpy():
    encoder = AdapterBertEncoder(**SIZES)
    plain, numpy = (encoder(support.batch(), n)["sequence_output"] for n in (2, np.int64(2)))
    np.testing.assert_array_equal(plain, numpy)


def test_norm_first_is_refused():
    with raises_code("unsupported", "norm_first=True"):
        AdapterEncoderBlock(
            num_attention_heads=2, inner_dim=8, inner_activation="relu", norm_first=True
        )


def test_bfloat16_keeps_float32_where_it_matters():
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        encoder = new_encoder(SIZES, AdapterConfig(bottleneck_size=4))
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")
    assert {v.dtype for v in encoder.variables} == {tf.float32}
    concrete = tf.function(encoder).get_concrete_function(support.batch())
    operations = concrete.graph.get_operations()
    softmaxes = [op for op in operations if op.type == "Softmax"]
    assert softmaxes and all(op.inputs[0].dtype == tf.float32 for op in softmaxes)
    assert any(op.type == "MatMul" and op.inputs[0].dtype == tf.bfloat16 for op in operations)
    assert encoder(support.batch())["sequence_output"].dtype == tf.float32


def test_products_in_bfloat16_and_all_else_in_float32():
    sizes = SIZES | {"product_dtype": "bfloat16"}
    encoder = new_encoder(sizes, AdapterConfig(bottleneck_size=4))
    exact = new_encoder(SIZES, AdapterConfig(bottleneck_size=4))
    theirs = encoder.named_variables()
    for name, variable in exact.named_variables().items():
        variable.assign(theirs[name])
    assert {v.dtype for v in encoder.variables} == {tf.float32}
    graph = tf.function(encoder).get_concrete_function(support.batch()).graph
    products = {op.inputs[0].dtype for op in graph.get_operations() if op.type == "Einsum"}
    others = {
        tensor.dtype
        for op in graph.get_operations()
        for tensor in op.outputs
        if op.type not in ("Einsum", "Cast") and tensor.dtype.is_floating
    }
    assert tf.bfloat16 in products and others == {tf.float32}
    actual, expected = (e(support.batch())["sequence_output"] for e in (encoder, exact))
    assert 1e-6 < np.abs(actual - expected).max() < 0.1


def test_only_what_is_multiplied_is_rounded():
    """Not the bias: 1 + 2**-10 has no bfloat16."""
    plain = tf_keras.layers.EinsumDense("abc,cd->abd", output_shape=(None, 2), bias_axes="d")
    layer = Dense(**plain.get_config() | {"product_dtype": "bfloat16"})
    x = np.full((1, 1, 2), 1 + 2**-10, "f4")
    layer.build(x.shape)
    layer.set_weights([np.eye(2, dtype="f4"), np.full(2, 1 + 2**-10, "f4")])
    np.testing.assert_array_equal(layer(x), np.full((1, 1, 2), 1 + (1 + 2**-10), "f4"))


def test_golden_forward_pass():
    expected = np.load(GOLDEN / "expected.npz")
    encoder = load_base(str(GOLDEN / "adapter_model.ckpt")).build_encoder(PRESETS["houlsby"])
    output = encoder(
        {
            "input_word_ids": expected["input_ids"],
            "input_mask": expected["input_mask"],
            "input_type_ids": expected["segment_ids"],
        }
    )
    real = expected["input_mask"][..., None] == 1
    np.testing.assert_allclose(
        output["sequence_output"] * real, expected["sequence_output"] * real, atol=1e-5
    )
    np.testing.assert_allclose(output["pooled_output"], expected["pooled_output"], atol=1e-5)
