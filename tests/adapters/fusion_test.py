"""AdapterFusion: a layer computed by hand, its members, its start, and what it refuses."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters import gradients
from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.methods.score_dropout import ScoreDropout
from adapter_bert_tf.adapters.modules import Sublayer, module_from_values
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.task_encoder import ModuleLayer
from adapter_bert_tf.training.optimizer import BertAdam
from tests import support
from tests.refusals import raises_code

PFEIFFER = dataclasses.replace(PRESETS["pfeiffer"], bottleneck_size=3)
HOULSBY = AdapterConfig(3)
KINDS = {
    "pfeiffer": PFEIFFER,
    "houlsby": HOULSBY,
    "scaled": dataclasses.replace(PFEIFFER, scale=2.5),
    "two layers deep": dataclasses.replace(HOULSBY, depth=2),
    "a LayerNorm of its own": dataclasses.replace(HOULSBY, layer_norm=True),
    "a LayerNorm of its result": dataclasses.replace(HOULSBY, normalize_output=True, scale=0.5),
}
SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_layers": 2,
    "num_attention_heads": 2,
    "inner_dim": 32,
    "max_sequence_length": 24,
    "attention_dropout": 0.1,
}


def drawn(specs, seed=0):
    rng = np.random.default_rng(seed)
    return {n: rng.normal(0, 0.5, spec.shape).astype(np.float32) for n, spec in specs.items()}


def place(hidden, seed=1):
    rng = np.random.default_rng(seed)
    output, residual = rng.normal(size=(2, 2, 5, hidden)).astype(np.float32)
    return Sublayer(0, "feed_forward", *map(tf.constant, (output, residual)), _norm, None, None)


def _norm(x):
    x = np.asarray(x)
    spread = np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return tf.constant((x - x.mean(-1, keepdims=True)) / spread * 1.5 + 0.25)


def _change(member, values, at):
    """What one member adds: an adapter alone, from values of its own."""
    values = {f"adapters/layer_0/feed_forward/{name}": value for name, value in values.items()}
    return member.module(values).adapt_sublayer(at).numpy() - at.output.numpy()


def _softmax(x):
    shifted = np.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


@pytest.mark.parametrize("training", [False, True], ids=["stepwise", "merged"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_by_hand(kind, training):
    """The definition, with every member's change written out; and as training computes it."""
    member, at = KINDS[kind], place(SIZES["hidden_size"])
    config = FusionConfig(member, ("a", "b", "c"))
    values = drawn(config.specs(SIZES))
    in_training = gradients.IN_TRAINING if training else {}
    module = config.module(values)
    actual = module.adapt_sublayer(dataclasses.replace(at, in_training=in_training)).numpy()

    prefix = "layer_0/feed_forward/"
    own = {n.split("/")[-1]: v for n, v in values.items() if n.startswith(f"fusion/{prefix}")}
    all_members = {
        n.split("/")[-1]: v for n, v in values.items() if n.startswith(f"members/{prefix}")
    }
    z = np.stack(
        [_change(member, {n: v[i] for n, v in all_members.items()}, at) for i in range(3)], 2
    ).astype(np.float64)
    x = _norm(at.output + at.residual) if member.normalize_input else at.output
    query = np.asarray(x, np.float64) @ own["query_kernel"] + own["query_bias"]
    keys = z @ own["key_kernel"] + own["key_bias"]
    shares = _softmax(np.einsum("bsh,bsnh->bsn", query, keys))
    expected = at.output + np.einsum("bsn,bsnh->bsh", shares, z @ own["value_kernel"])
    assert shares.std() > 0.1  # It does decide.
    scale = np.abs(expected).max()
    # Three products of float32 against float64; 1.4e-6 on a processor without AVX-512.
    np.testing.assert_allclose(actual / scale, expected / scale, atol=2e-6)


def exactly(config, sizes, members):
    """Values of a fusion whose value kernels are the identity, and given members."""
    values = drawn(config.specs(sizes))
    for name in values:
        if name.endswith("value_kernel"):
            values[name] = np.eye(sizes["hidden_size"], dtype=np.float32)
        if name.startswith("members/"):
            stem = name.replace("members/", "adapters/")
            values[name] = np.stack([member[stem] for member in members])
    return values


@pytest.mark.parametrize("kind", KINDS)
def test_one_member_and_the_identity_is_that_member(kind):
    tf_keras.utils.set_random_seed(0)
    member, encoder = KINDS[kind], AdapterBertEncoder(**SIZES)
    config = FusionConfig(member, ("a",))
    weights = drawn(member.specs(SIZES), seed=3)
    values = exactly(config, SIZES, [weights])
    inputs = support.batch()
    alone = encoder(inputs, module=module_from_values(member, weights))
    fused = encoder(inputs, module=module_from_values(config, values))
    bare = encoder(inputs)
    for name in alone:
        np.testing.assert_allclose(fused[name], alone[name], atol=1e-5)
        assert np.abs(alone[name] - bare[name]).max() > 0.02


def test_equal_members_are_listened_to_alike():
    """Whatever the attention, the sum of equal members is one of them."""
    encoder = AdapterBertEncoder(**SIZES)
    weights = drawn(PFEIFFER.specs(SIZES), seed=3)
    config, inputs = FusionConfig(PFEIFFER, tuple("abcd")), support.batch()
    values = exactly(config, SIZES, [weights] * 4)
    shares = []
    module = config.module(values)
    module.observe = lambda at, weights: shares.append((at.layer, at.name, weights))
    fused = encoder(inputs, module=module)["sequence_output"]
    alone = encoder(inputs, module=module_from_values(PFEIFFER, weights))["sequence_output"]
    np.testing.assert_allclose(fused, alone, atol=1e-5)
    assert [(layer, sublayer) for layer, sublayer, _ in shares] == [
        (i, "feed_forward") for i in range(SIZES["num_layers"])
    ]
    for _, _, weights in shares:
        np.testing.assert_allclose(weights, np.full(weights.shape, 0.25), atol=1e-6)


def test_the_start():
    """Q and K from N(0, 0.02), V near the identity, and what holds it there."""
    sizes = SIZES | {"hidden_size": 64, "num_attention_heads": 2}
    layer = ModuleLayer(FusionConfig(PFEIFFER, ("a", "b")), sizes)
    named = layer.named_variables()
    at = "fusion/layer_1/feed_forward"
    for name in ("query_kernel", "key_kernel"):
        assert 0.015 < named[f"{at}/{name}"].numpy().std() < 0.025
    value = named[f"{at}/value_kernel"].numpy()
    np.testing.assert_array_equal(np.diag(value), np.ones(64, np.float32))
    assert np.all(value[~np.eye(64, dtype=bool)] == np.float32(1e-6))
    assert not named[f"{at}/query_bias"].numpy().any()
    assert float(tf.add_n(layer.losses)) < 1e-9
    named[f"{at}/value_kernel"].assign(3 * np.eye(64))
    assert float(tf.add_n(layer.losses)) == pytest.approx(0.01 * 64 * 4, rel=1e-5)


def test_queries_and_keys_start_from_a_whole_normal():
    """Not from one that is cut at two sigma, which has a deviation of 0.0176."""
    layer = ModuleLayer(FusionConfig(PFEIFFER, ("a",)), SIZES | {"hidden_size": 128})
    named = layer.named_variables()
    drawn = np.concatenate([named[f"{at}/{n}_kernel"].numpy().ravel() for at, n in _kernels()])
    assert drawn.std() == pytest.approx(0.02, rel=0.01)
    assert 0.03 < (np.abs(drawn) > 0.04).mean() < 0.06


def _kernels():
    places = [f"fusion/layer_{i}/feed_forward" for i in range(2)]
    return [(place, name) for place in places for name in ("query", "key")]


def test_values_do_not_decay():
    """Q and K do: weight decay is 0.01 of the learning rate, where there is no gradient."""
    layer = ModuleLayer(FusionConfig(PFEIFFER, ("a",)), SIZES, name="parts")
    named = layer.named_variables()
    before = {name: variable.numpy() for name, variable in named.items()}
    BertAdam(1.0).apply_gradients([(tf.zeros_like(v), v) for v in named.values()])
    for name, variable in named.items():
        stays = name.endswith(("value_kernel", "_bias"))
        expected = before[name] if stays else 0.99 * before[name]
        np.testing.assert_allclose(variable, expected, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("sizes", "member", "expected"),
    [
        ({"hidden_size": 768, "num_layers": 12}, PRESETS["pfeiffer"], 21_252_096),
        ({"hidden_size": 384, "num_layers": 6}, PRESETS["pfeiffer"], 2_658_816),
        ({"hidden_size": 768, "num_layers": 12}, PRESETS["houlsby"], 2 * 21_252_096),
    ],
)
def test_counts(sizes, member, expected):
    specs = FusionConfig(member, ("a", "b")).specs(SIZES | sizes)
    own = [spec for spec in specs.values() if spec.group == "fusion"]
    assert sum(int(np.prod(spec.shape)) for spec in own) == expected


def test_a_config_travels():
    config = FusionConfig(HOULSBY, ("a", "b"), cooling_steps=7, own_norms=True)
    assert ModuleConfig.from_json(config.to_json()) == config
    assert config.replaced_groups == ("LayerNorm",)
    assert FusionConfig(HOULSBY, ["a", "b"]).replaced_groups == ()
    assert "fusion of 2 (a, b)" in config.summary()


REFUSED = {
    "no members": ({"members": ()}, "invalid: members"),
    "one of them twice": ({"members": ("a", "a")}, "invalid: members"),
    "a member without a name": ({"members": ("a", "")}, "invalid: members"),
    "names in one text": ({"members": "ab"}, "invalid: members"),
    "too many": ({"members": tuple(map(str, range(1001)))}, "invalid: members"),
    "parallel members": ({"member": PRESETS["parallel"]}, "invalid: members"),
    "a member of text": ({"member": "pfeiffer"}, "invalid: member must be an AdapterConfig"),
    "an unknown key of it": ({"member": {"x": 1}}, "invalid: adapter"),
    "a step below 0": ({"cooling_steps": -1}, "invalid: cooling_steps"),
    "half a step": ({"cooling_steps": 0.5}, "invalid: cooling_steps"),
    "norms by number": ({"own_norms": 1}, "invalid: own_norms"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    changes, message = REFUSED[case]
    with raises_code(message):
        FusionConfig(**({"member": PFEIFFER, "members": ("a", "b")} | changes))


def test_what_dropout_leaves_of_the_scores_has_the_keys_bias():
    """Scores are dropped before the softmax, as published: then b_K does not cancel."""
    at, config = place(SIZES["hidden_size"]), FusionConfig(PFEIFFER, ("a", "b"))
    values = drawn(config.specs(SIZES))
    other = {n: v * (3 if n.endswith("key_bias") else 1) for n, v in values.items()}
    name = "fusion/layer_0/feed_forward"
    dropped = {name: lambda scores: scores * tf.constant([1.0, 0.0])}
    for dropouts, same in ((None, True), (dropped, False)):
        actual = [config.module(v, dropouts).adapt_sublayer(at).numpy() for v in (values, other)]
        assert np.allclose(*actual, atol=1e-5) == same


def test_the_temperature_falls_in_training_alone():
    layer = ScoreDropout(0.0, cooling_steps=10)
    temperatures = [float(layer.temperature(step)) for step in (0, 5, 10, 99)]
    assert temperatures == pytest.approx([50.0, 25.5, 1.0, 1.0])
    scores = tf.constant([[[1.0, 3.0]]])
    np.testing.assert_array_equal(layer(scores, training=False), scores)
    with raises_code("invalid", "cooling_steps"):
        layer(scores, training=True)
