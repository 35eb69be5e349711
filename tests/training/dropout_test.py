"""Dropout's masks: a function of seed, layer and step."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.training import dropout
from adapter_bert_tf.training.dropout import draw_dropout, seed_dropout


@pytest.fixture(autouse=True, params=[False, True], ids=["derived", "counted"])
def counted(request, monkeypatch):
    """All of it holds for the masks of compiled steps, too."""
    monkeypatch.setattr(dropout.draw_dropout, "__defaults__", (request.param,))
    monkeypatch.setattr(dropout.seed_dropout, "__defaults__", (None, request.param))
    return request.param


def masks(seed=1, step=0, rate=0.5):
    """What two dropout layers make of ones."""
    model = tf_keras.Sequential([tf_keras.layers.Dropout(rate), tf_keras.layers.Dropout(rate)])
    counter = tf.Variable(float(step))
    seed_dropout(model, seed, counter)
    return [layer(tf.ones([64, 64]), training=True).numpy() for layer in model.layers]


def test_the_same_again():
    np.testing.assert_array_equal(masks(), masks())


@pytest.mark.parametrize("changes", [{"seed": 2}, {"step": 1}, {"seed": 2**32 - 1}])
def test_another_seed_or_step_is_another_mask(changes):
    for one, other in zip(masks(), masks(**changes), strict=True):
        assert 0.4 < (one == other).mean() < 0.6  # As of independent masks.


def test_layers_differ():
    first, second = masks()
    assert 0.4 < (first == second).mean() < 0.6


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_rate_and_scale(rate):
    mask = np.stack(masks(rate=rate))
    assert (mask == 0).mean() == pytest.approx(rate, abs=0.02)
    assert np.unique(mask).tolist() == [0, pytest.approx(1 / (1 - rate), rel=1e-5)]  # 65,536ths.


def test_nothing_is_dropped_in_evaluation():
    model = tf_keras.Sequential([tf_keras.layers.Dropout(0.5)])
    seed_dropout(model, 0, tf.Variable(0.0))
    np.testing.assert_array_equal(model(tf.ones([8, 8]), training=False), np.ones([8, 8]))


def test_a_model_that_was_trained_with_them_is_saved(tmp_path):
    layers = [tf_keras.layers.Dropout(0.5), tf_keras.layers.Dense(2)]
    model = tf_keras.Sequential(layers)
    model.compile("sgd", "mse")
    seed_dropout(model, 0, model.optimizer.iterations)
    model.fit(tf.ones([4, 3]), tf.ones([4, 2]), verbose=0)
    model.save(tmp_path / "saved")
    loaded = tf_keras.models.load_model(tmp_path / "saved")
    np.testing.assert_allclose(loaded(tf.ones([1, 3])), model(tf.ones([1, 3])), rtol=1e-6)
    assert len(model.weights) == 2 and not layers[0].weights


@pytest.mark.parametrize("rate", [0.1, 1 / 3, 0.999, 1 - 1e-9])
@pytest.mark.parametrize("shape", [[3, 5], [1], [128, 1001]])
def test_the_mean_is_kept(rate, shape):
    """What stays is scaled by the share that does, in 65,536ths, also where values are odd."""
    found = draw_dropout(tf.ones(shape), rate, tf.constant(shape), tf.constant([1, 2])).numpy()
    stays = max(1 - round(rate * 65536) / 65536, 1 / 65536)  # Something always does.
    assert found.shape == tuple(shape)
    assert set(np.unique(found)) <= {0.0, np.float32(1 / stays)}
    spread = np.sqrt((1 - stays) / stays / found.size)
    assert abs(found.mean() - 1) < 4 * spread


def test_a_rate_of_zero_draws_nothing():
    @tf.function
    def drop(x):
        return draw_dropout(x, 0.0, tf.shape(x), tf.constant([1, 2]))

    function = drop.get_concrete_function(tf.TensorSpec([4]))
    assert not [op.type for op in function.graph.get_operations() if "Random" in op.type]
    np.testing.assert_array_equal(drop(tf.range(4.0)), [0, 1, 2, 3])


def test_neighbours_are_independent():
    """Two values are drawn from one number, and must not fall together."""
    kept = (
        draw_dropout(tf.ones([2**16]), 0.5, tf.constant([2**16]), tf.constant([3, 4])).numpy() > 0
    )
    both = kept.reshape(-1, 2).all(-1).mean()
    assert both == pytest.approx(0.25, abs=0.01)


def test_gradient_of_what_stays():
    x = tf.constant([[1.0, -2.0, 3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = draw_dropout(x, 0.5, tf.shape(x), tf.constant([0, 5]))
    np.testing.assert_array_equal(tape.gradient(found, x), found / x)


def test_xla_draws_the_counted_masks(counted):
    """As the device without XLA, and in few operations."""
    drop = tf.function(
        lambda x, seed: draw_dropout(x, 0.5, tf.shape(x), seed), jit_compile=True, autograph=False
    )
    arguments = tf.ones([64, 64]), tf.constant([7, 8])
    operations = drop.experimental_get_compiler_ir(*arguments)(stage="hlo").count(" = ")
    assert (operations < 60) == counted
    if counted:
        np.testing.assert_array_equal(
            drop(*arguments), draw_dropout(arguments[0], 0.5, tf.constant([64, 64]), arguments[1])
        )


@pytest.mark.parametrize("shape", [[3, 4], [2, 5, 3], [7, 2]])
@pytest.mark.parametrize("counted", [False, True])
def test_an_even_number_of_values_has_the_same_mask(shape, counted):
    seed, ones = tf.constant([5, 6]), tf.ones(shape)
    expected = draw_dropout(ones, 0.5, tf.constant(shape), seed, counted)
    np.testing.assert_array_equal(draw_dropout(ones, 0.5, None, seed, counted), expected)
