"""A batch in parts: the same step as the whole batch, in less memory."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.training.dropout import Microbatch, seed_dropout
from adapter_bert_tf.training.loop import TrainingSettings, train
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support
from tests.training import tiny

ROWS, STEPS = 32, 4
BATCHES = [
    (support.batch(seed=i, rows=ROWS), np.arange(i, i + ROWS, dtype="i4") % 3 % 2)
    for i in range(STEPS)
]


def trained_in(parts, folder, method, rate=0.0):
    """What a classifier's variables are after training in so many parts a batch."""
    tf_keras.utils.set_random_seed(3)
    adapter = AdapterConfig(bottleneck_size=4) if method == "adapters" else None
    base = load_base(folder)
    model = Classifier(base.new_encoder(adapter, rate), 2, dropout=rate)
    base.assign(model.named_variables())
    trained = select_trained(model, Tuning(method))
    settings = TrainingSettings(STEPS, ROWS, 1e-3, microbatches=parts)
    train(model, trained, lambda start, share: tiny.dataset(BATCHES[start:], share), settings)
    return tiny.values(trained)


@pytest.fixture(scope="module")
def whole(tiny_base_folder):
    return {method: trained_in(1, tiny_base_folder, method) for method in ("adapters", "full")}


@pytest.mark.parametrize(("method", "parts"), [("adapters", 4), ("full", 4), ("adapters", 32)])
def test_four_times_eight_is_32(method, parts, whole, tiny_base_folder):
    ours = trained_in(parts, tiny_base_folder, method)
    for name, value in whole[method].items():
        np.testing.assert_allclose(ours[name], value, atol=1e-5, err_msg=name)
    assert np.abs(ours["head/bias"]).max() > 1e-4  # It began at zero.


def test_each_part_has_masks_of_its_own():
    layer = tf_keras.layers.Dropout(0.5)
    model = tf_keras.Sequential([layer])
    part = Microbatch(3)
    drawn = []
    for step in range(2):
        seed_dropout(model, 1, tf.Variable(float(step)), part)
        for number in range(3):
            with part.select(number):
                drawn.append(layer(tf.ones([64, 64]), training=True).numpy())
    for i, one in enumerate(drawn):
        for other in drawn[:i]:
            assert 0.4 < (one == other).mean() < 0.6


@pytest.mark.slow
def test_masks_go_along_with_the_parts(tiny_base_folder):
    """With dropout, a batch of copies has a gradient of many masks only if the parts differ."""
    one, again, four = (trained_in(n, tiny_base_folder, "adapters", 0.5) for n in (1, 1, 4))
    name = "head/kernel"
    np.testing.assert_array_equal(one[name], again[name])
    assert np.abs(one[name] - four[name]).max() > 1e-5
