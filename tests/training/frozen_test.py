"""Frozen lower layers: what is trained then, and that to keep their output changes nothing."""

import dataclasses
import errno
import functools
import gc
import shutil
import weakref

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.methods.projected_attention import PalsConfig
from adapter_bert_tf.adapters.modules import FROZEN_OUTPUT
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.base import load_base
from adapter_bert_tf.data.batches import Features, gather_batches
from adapter_bert_tf.data.frozen_outputs import FrozenOutputs
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.training import frozen_layers
from adapter_bert_tf.training.loop import TrainingSettings, train
from adapter_bert_tf.training.parameter_report import count
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support
from tests.refusals import raises_code

# Of the tiny base, per layer: attention 4 (16*16 + 16), feed-forward 16*32 + 32 + 32*16 + 16.
LAYER, NORMS, POOLER, HEAD = 4 * 272 + 1072, 2 * 32, 272, 34
ADAPTERS = 2 * (2 * 16 * 4 + 4 + 16)
UPPER = AdapterConfig(bottleneck_size=4, layers=(1,))
LENGTHS = (3, 6, 4, 6)
STEPS = 6


def model_of(folder, config=UPPER, tuning=None, frozen_layers=1, dropout=None):
    """A classifier with trained upper layers, the same each time."""
    tf_keras.utils.set_random_seed(3)
    base = load_base(folder)
    encoder = base.new_encoder(config, dropout, frozen_layers=frozen_layers)
    model = Classifier(encoder, 2, dropout=0.1 if dropout is None else dropout)
    base.assign(model.named_variables())
    return model, select_trained(model, tuning or Tuning(frozen_layers=1))


def features():
    """Four examples of different lengths."""
    rng = np.random.default_rng(0)
    ids = [rng.integers(5, 30, length).astype("i4") for length in LENGTHS]
    ragged = tf.ragged.constant([list(row) for row in ids], tf.int32)
    lengths = np.array(LENGTHS)
    return Features(ragged, tf.zeros_like(ragged), tf.constant([0, 1, 1, 0]), lengths, lengths > 99)


def trained_values(model, trained, examples, pad_to=2):
    """The values after some steps, by name."""
    plan = np.array([[0, 1], [2, 3]] * (STEPS // 2))
    settings = TrainingSettings(steps=STEPS, batch_size=2, learning_rate=1e-2)
    batches = lambda start, share: gather_batches(examples, plan[start:], 8, pad_to, share)  # noqa: E731
    train(model, trained, batches, settings)
    return {name: variable.numpy() for name, variable in trained.items()}


COUNTS = {
    "adapters": (Tuning(frozen_layers=1), UPPER, ADAPTERS + NORMS + HEAD),
    "full": (Tuning("full", frozen_layers=1), None, LAYER + NORMS + POOLER + HEAD),
    "top_k": (Tuning("top_k", top_k=1, frozen_layers=1), None, LAYER + NORMS + POOLER + HEAD),
    "layer_norm": (Tuning("layer_norm", frozen_layers=1), None, NORMS + HEAD),
    "head": (Tuning("head", frozen_layers=1), None, HEAD),
}


@pytest.mark.parametrize("method", COUNTS)
def test_counts(method, tiny_base_folder):
    tuning, config, expected = COUNTS[method]
    _, trained = model_of(tiny_base_folder, config, tuning)
    assert count(trained.values()) == expected
    assert not any("layer_0" in name or "embeddings" in name for name in trained)


WRONG = {
    "all layers": (Tuning(frozen_layers=2), UPPER, "invalid: frozen_layers"),
    "fewer than none": (Tuning(frozen_layers=-1), UPPER, "invalid: frozen_layers"),
    "a layer of top_k": (Tuning("top_k", frozen_layers=1), None, "invalid: frozen_layers"),
    "adapters below": (Tuning(frozen_layers=1), AdapterConfig(4), "conflict: frozen_layers=1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_frozen(case, tiny_base_folder):
    tuning, config, message = WRONG[case]
    with raises_code(message):
        model_of(tiny_base_folder, config, tuning)


@pytest.mark.parametrize("value", ["2", 1.0, True])
def test_a_number_of_layers_is_one(value):
    with raises_code("invalid", "frozen_layers"):
        Tuning(frozen_layers=value)


@pytest.mark.parametrize("config", [FusionConfig(UPPER, ("a", "b")), PalsConfig(("a", "b"), 12, 3)])
def test_parts_in_all_layers_leave_none_to_freeze(config):
    method = "fusion" if isinstance(config, FusionConfig) else "pals"
    with raises_code("conflict", "frozen_layers"):
        Tuning(method, frozen_layers=1)


def test_the_same_weights_as_with_gradients_and_no_dropout(tiny_base_folder):
    """Without dropout, the frozen layers compute what they always do."""
    found = [
        trained_values(*model_of(tiny_base_folder, frozen_layers=number, dropout=0.0), features())
        for number in (0, 1)
    ]
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("pad_to", [2, None])
def test_kept_outputs_train_the_same_weights(pad_to, tiny_base_folder):
    """With dropout above: its masks are those of the run without."""
    plain = trained_values(*model_of(tiny_base_folder), features(), pad_to)
    model, trained = model_of(tiny_base_folder)
    model.compile()
    kept = frozen_layers.frozen_outputs(model, features(), 3, 8, pad_to)
    examples = dataclasses.replace(features(), frozen=kept)
    found = trained_values(model, trained, examples, pad_to)
    assert found.keys() == plain.keys()
    for name, value in plain.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


def test_nothing_below_is_computed_where_its_output_is_given(tiny_base_folder):
    model, _ = model_of(tiny_base_folder)
    inputs = support.batch(rows=2)
    expected = model(inputs)
    inputs[FROZEN_OUTPUT] = model.encoder.frozen_output(inputs)
    other = inputs | {"input_word_ids": np.zeros_like(inputs["input_word_ids"])}
    np.testing.assert_allclose(model(other), expected, atol=1e-6)


def test_frozen_layers_drop_nothing_and_have_no_gradient(tiny_base_folder):
    model, _ = model_of(tiny_base_folder)
    inputs, layers = support.batch(rows=2), frozen_layers.FrozenLayers(model.encoder)
    at_rest, in_training = layers(inputs, training=False), layers(inputs, training=True)
    np.testing.assert_allclose(in_training, at_rest, atol=1e-5)
    variables = model.encoder.encoder.base_variables()
    below = variables["bert/encoder/layer_0/output/dense/kernel"]
    above = variables["bert/encoder/layer_1/output/dense/kernel"]
    with tf.GradientTape() as tape:
        tape.watch([below, above])
        logits = model(inputs, training=True)
    gradients = tape.gradient(logits, [below, above])
    assert gradients[0] is None and gradients[1] is not None


def test_own_norms_of_a_shared_base_are_those_of_the_frozen_layers(tiny_base_folder):
    base = load_base(tiny_base_folder)
    encoder = base.new_encoder(frozen_layers=1)
    base.assign(encoder.named_variables())
    own = TaskEncoder(encoder, UPPER)
    inputs = support.batch(rows=2)
    np.testing.assert_allclose(own.frozen_output(inputs), encoder.frozen_output(inputs), atol=1e-6)
    own.norms["bert_embeddings_LayerNorm"].beta.assign_add(tf.ones(16))
    assert np.abs(own.frozen_output(inputs) - encoder.frozen_output(inputs)).max() > 1e-3


def test_rows_of_different_lengths_come_back_padded():
    kept = FrozenOutputs(np.array([2, 3]), 2)
    kept.put([1, 0], np.arange(16, dtype="f4").reshape(2, 4, 2))
    expected = [[[8, 9], [10, 11], [0, 0]], [[0, 1], [2, 3], [4, 5]]]
    np.testing.assert_array_equal(kept.padded(np.array([0, 1]), 3), expected)
    found = kept.gather(tf.constant([1, 1], tf.int64), tf.constant(3, tf.int64))
    np.testing.assert_array_equal(found, [expected[1]] * 2)


def test_no_room_on_the_disk_is_said_before_anything_is_computed(monkeypatch):
    usage = shutil._ntuple_diskusage(10, 9, 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with raises_code("unavailable", "TMPDIR"):
        FrozenOutputs(np.array([1_000_000]), 1000)


def test_a_file_that_may_not_be_so_large_is_said_so(monkeypatch):
    def refuse(*given):
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr("os.posix_fallocate", refuse, raising=False)
    with raises_code("unavailable", "cache_frozen"):
        FrozenOutputs(np.array([3]), 2)


def test_the_file_goes_with_its_training():
    """TensorFlow keeps a graph's Python functions for ever; they must not keep what they read."""
    kept = FrozenOutputs(np.array([2]), 2)
    kept.put([0], np.ones((1, 2, 2), "f4"))
    data = tf.data.Dataset.from_tensors([0]).map(functools.partial(kept.gather, width=2))
    assert [value.numpy().sum() for value in data] == [4]
    values = weakref.ref(kept._values)
    del kept, data
    gc.collect()
    assert values() is None
