"""Gradients written out: those that TensorFlow derives from the plain functions."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters import gradients, ops
from adapter_bert_tf.adapters.base_layers import Activation
from tests import support
from tests.training import tiny

X = np.concatenate([np.linspace(-9, 9, 97), [0.0, -30.0, 30.0]]).astype(np.float32)


def value_and_gradients(function, *inputs):
    """Of a weighted sum of a function's results, by each input."""
    inputs = [tf.constant(x) for x in inputs]

    @tf.function
    def both():
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            actual = function(*inputs)
            weights = tf.reshape(
                tf.cos(tf.range(tf.size(actual), dtype=actual.dtype)), actual.shape
            )
            total = tf.reduce_sum(actual * weights)
        return actual, tape.gradient(total, inputs)

    return both()


@pytest.mark.parametrize("name", ["gelu", "gelu_erf"])
def test_activations(name):
    plain = ops.ACTIVATION_FUNCTIONS[name]
    values, (slopes,) = value_and_gradients(gradients.IN_TRAINING[plain], X)
    theirs, (their_slopes,) = value_and_gradients(plain, X)
    np.testing.assert_allclose(values, theirs, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(slopes, their_slopes, rtol=2e-6, atol=2e-6)


def test_gelu_by_hand():
    """At 1: Phi(1) = 0.841345, phi(1) = 0.241971."""
    values, (slopes,) = value_and_gradients(gradients.gelu_erf, np.float32([1.0]))
    assert values.numpy() == pytest.approx([0.841345], abs=1e-6)
    # The weight of the first value is cos(0) = 1.
    assert slopes.numpy() == pytest.approx([0.841345 + 0.241971], abs=1e-6)


def test_half_precision_has_the_plain_function():
    plain = ops.ACTIVATION_FUNCTIONS["gelu_erf"]
    x = tf.constant(X, tf.float16)
    actual = Activation(plain, dtype="float16")(x, training=True)
    assert actual.dtype == tf.float16
    np.testing.assert_array_equal(actual, plain(x))


def test_layer_norm():
    rng = np.random.default_rng(0)
    x = rng.normal(1.0, 3.0, (2, 5, 8)).astype(np.float32)
    gamma, beta = rng.normal(size=(2, 8)).astype(np.float32)
    ours = value_and_gradients(lambda *a: gradients.layer_norm(*a, 1e-12), x, gamma, beta)
    theirs = value_and_gradients(lambda *a: ops.layer_norm(*a, 1e-12), x, gamma, beta)
    for actual, expected in zip(tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mask", [[[True, False, True]], [[True], [False]]])
def test_keep(mask):
    """By a mask of its own shape or one that is broadcast, as dropout's `noise_shape`."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    ours = value_and_gradients(lambda x: gradients.keep(x, tf.constant(mask), 1.25), x)
    theirs = value_and_gradients(lambda x: x * tf.cast(mask, x.dtype) * 1.25, x)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("equation", "x", "kernel"),
    [
        ("abc,cd->abd", (2, 3, 4), (4, 6)),
        ("abc,cde->abde", (2, 3, 4), (4, 2, 3)),
        ("abc,cde->adbe", (2, 3, 4), (4, 2, 3)),
        ("abcd,cde->abe", (2, 3, 2, 2), (2, 2, 6)),
        ("acbd,cde->abe", (2, 2, 3, 2), (2, 2, 6)),
    ],
)
def test_low_rank_product(equation, x, kernel):
    """With heads before or after positions, in the input or the output."""
    rng = np.random.default_rng(0)
    shapes = [x, kernel, (4, 2), (2, 6)]
    inputs = [rng.normal(size=shape).astype(np.float32) for shape in shapes]

    def plain(x, kernel, a, b):
        return tf.einsum(equation, x, kernel + tf.reshape(a @ b, kernel.shape))

    ours = value_and_gradients(functools.partial(gradients.low_rank_product, equation), *inputs)
    theirs = value_and_gradients(plain, *inputs)
    for actual, expected in zip(tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.fixture
def model(tmp_path):
    """A tiny classifier without dropout, so that training changes nothing but the gradients."""
    support.write_google(tmp_path)
    return tiny.without_dropout(tiny.setup(tmp_path)[0])


def test_the_encoder_has_them_in_training_only(model, monkeypatch):
    """Where there are no gradients the plain functions do less, and say the same."""
    inputs = support.batch()
    plain = model(inputs, training=False).numpy()
    np.testing.assert_allclose(model(inputs, training=True), plain, atol=1e-5)
    monkeypatch.setattr(gradients, "layer_norm", lambda *_: 1 / 0)
    np.testing.assert_array_equal(model(inputs, training=False), plain)
    with pytest.raises(ZeroDivisionError):
        model(inputs, training=True)


def test_a_model_moves_as_with_plain_functions(model, monkeypatch):
    ours = slopes(model)
    monkeypatch.setattr(gradients, "IN_TRAINING", {})
    monkeypatch.setattr(gradients, "layer_norm", ops.layer_norm)
    theirs = slopes(model)
    assert len(ours) == len(theirs) > 10
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def slopes(model):
    """A model's loss, and its gradients by all that is trained."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(model(support.batch(), training=True)))
    actual = tape.gradient(loss, model.trainable_variables)
    return [loss.numpy(), *(tf.convert_to_tensor(one).numpy() for one in actual)]
