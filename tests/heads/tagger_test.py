"""The tagger: its loss over words, its dropout, and saved as a Keras model."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.heads.tagger import Tagger
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support

ROWS, LENGTH, TAGS = 3, 7, 4


@pytest.fixture(scope="module")
def model(tiny_base_folder):
    made = Tagger(load_base(tiny_base_folder).build_encoder(AdapterConfig(4)), TAGS, dropout=0.5)
    select_trained(made, Tuning())
    return made


def test_the_loss_of_a_batch_is_the_mean_over_its_words(model):
    inputs = support.batch(rows=ROWS, length=LENGTH)
    words = [(0, 1, 3), (0, 4, 0), (0, 5, 1), (1, 1, 2), (2, 1, 0)]  # Row, position, tag.
    labels = np.zeros((ROWS, LENGTH, 2), "f4")
    for row, position, tag in words:
        labels[row, position] = tag, ROWS / len(words)
    model.compile("sgd", model.training_loss())
    logits = tf.nn.log_softmax(model(inputs)).numpy()
    expected = -np.mean([logits[word] for word in words])
    np.testing.assert_allclose(model.evaluate(inputs, labels, verbose=0), expected, rtol=1e-5)


def test_dropout_is_for_training(model):
    inputs = support.batch(rows=ROWS, length=LENGTH)
    assert model(inputs).shape == (ROWS, LENGTH, TAGS)
    np.testing.assert_array_equal(model(inputs), model(inputs))
    assert not np.allclose(model(inputs, training=True), model(inputs))


def test_no_pooler_is_trained(model):
    names = {v.ref(): name for name, v in model.named_variables().items()}
    trained = [names[variable.ref()] for variable in model.trainable_variables]
    assert "head/kernel" in trained and not any("pooler" in name for name in trained)


def test_a_keras_file_gives_it_back(model, tmp_path):
    model.save(tmp_path / "tagger.keras")
    again = tf_keras.models.load_model(tmp_path / "tagger.keras", compile=False)
    assert (again.num_tags, again.dropout_rate) == (TAGS, 0.5)
    inputs = support.batch(rows=ROWS, length=LENGTH)
    np.testing.assert_allclose(again(inputs), model(inputs), atol=1e-6)
    assert len(again.trainable_variables) == len(model.trainable_variables)
