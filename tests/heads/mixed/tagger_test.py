"""Several taggers on one encoder: each row has its own tags, and one tagger alone is a tagger."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.heads.mixed.model import NOT_ITS_OWN, HeadOf
from adapter_bert_tf.heads.mixed.tagger import MixedTagger
from adapter_bert_tf.heads.tagger import Tagger
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support

ROWS, LENGTH = 4, 7
A, B = HeadOf("a", 3), HeadOf("b", 2)
ADAPTER = AdapterConfig(4)
IDS = np.array([0, 1, 1, 0], "i4")
# Row, position, and tag among those of its task.
WORDS = [(0, 1, 2), (0, 3, 0), (1, 1, 1), (1, 5, 0), (2, 2, 1), (3, 1, 1)]


@pytest.fixture(scope="module")
def base(tiny_base_folder):
    return load_base(tiny_base_folder)


@pytest.fixture(scope="module")
def model(base):
    """Two taggers with random weights."""
    tf_keras.utils.set_random_seed(0)
    made = MixedTagger(base.build_encoder(PerTaskConfig(ADAPTER, ("a", "b"))), [A, B])
    select_trained(made, Tuning("per_task_adapters"))
    rng = np.random.default_rng(0)
    for name, variable in made.named_variables().items():
        if name.startswith("tasks/"):
            variable.assign(rng.normal(size=variable.shape) * 0.3)
    return made


@pytest.fixture(scope="module")
def inputs():
    return support.batch(rows=ROWS, length=LENGTH)


def alone(base, model, head):
    """The tagger of one of the tasks, with the same weights."""
    one = Tagger(base.build_encoder(ADAPTER), head.outputs)
    for name, variable in one.named_variables().items():
        if not name.startswith("bert/"):
            variable.assign(model.named_variables()[f"tasks/{head.task}/{name}"])
    return one


def labels_of(model, words, rows=ROWS):
    """Labels as of `weighted_batches`, with tags numbered over all tasks."""
    labels = np.zeros((rows, LENGTH, 2), "f4")
    for row, position, tag in words:
        first = model.columns("ab"[IDS[row]]).start
        labels[row, position] = first + tag, rows / len(words)
    return labels


def test_each_row_has_the_adapter_and_the_tags_of_its_task(base, model, inputs):
    found = model(inputs | {"task_ids": IDS}).numpy()
    assert found.shape == (ROWS, LENGTH, 5)
    for number, head in enumerate((A, B)):
        own, columns = number == IDS, model.columns(head.task)
        expected = alone(base, model, head)(inputs).numpy()[own]
        np.testing.assert_allclose(found[own][..., columns], expected, atol=1e-5)
        assert (np.delete(found[own], np.r_[columns], -1) == NOT_ITS_OWN).all()


def test_the_loss_is_the_mean_over_the_words_of_all_tasks(base, model, inputs):
    expected = 0.0
    for row, position, tag in WORDS:
        logits = alone(base, model, (A, B)[IDS[row]])(inputs)[row, position]
        expected -= float(tf.nn.log_softmax(logits)[tag]) / len(WORDS)
    found = model.training_loss()(labels_of(model, WORDS), model(inputs | {"task_ids": IDS}))
    assert found.shape == ROWS
    assert float(tf.reduce_mean(found)) == pytest.approx(expected, rel=1e-5)


def gradients(model, inputs, words):
    """Dict from name to gradient of the loss of these words."""
    trained = {v.ref(): n for n, v in model.named_variables().items()}
    with tf.GradientTape() as tape:
        outputs = model(inputs | {"task_ids": IDS})
        loss = tf.reduce_mean(model.training_loss()(labels_of(model, words), outputs))
    variables = model.trainable_variables
    found = tape.gradient(loss, variables, unconnected_gradients="zero")
    return {trained[v.ref()]: g.numpy() for v, g in zip(variables, found, strict=True)}


def test_tags_of_other_tasks_never_count(model, inputs):
    """Words of `a` alone train neither adapter nor head of `b`, and no row of it has a gradient."""
    found = gradients(model, inputs, [word for word in WORDS if IDS[word[0]] == 0])
    assert not any("pooler" in name for name in found)
    for name, gradient in found.items():
        assert np.isfinite(gradient).all(), name
        if name.startswith("tasks/b/"):
            assert not gradient.any(), name
    assert found["tasks/a/head/kernel"].any() and found["tasks/a/head/bias"].any()


@pytest.mark.parametrize("value", [0.0, 5.0], ids=["as it is", "another head"])
def test_a_head_does_not_change_the_loss_of_another_task(value, model, inputs):
    words = [word for word in WORDS if IDS[word[0]] == 0]
    loss = model.training_loss()
    before = loss(labels_of(model, words), model(inputs | {"task_ids": IDS})).numpy()
    bias = model.heads[1].bias
    bias.assign_add([value] * B.outputs)
    after = loss(labels_of(model, words), model(inputs | {"task_ids": IDS})).numpy()
    bias.assign_sub([value] * B.outputs)
    np.testing.assert_array_equal(before, after)


def test_a_keras_file_gives_it_back(model, inputs, tmp_path):
    model.save(tmp_path / "taggers.keras")
    again = tf_keras.models.load_model(tmp_path / "taggers.keras", compile=False)
    assert list(again.head_of.values()) == [A, B]
    both = inputs | {"task_ids": IDS}
    np.testing.assert_allclose(again(both), model(both), atol=1e-6)
