"""Batches of windows: labels where words begin, and weights whose mean is that over words."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.mixture import concatenate
from adapter_bert_tf.data.tagging.batches import (
    eval_batches,
    eval_plan,
    features_of,
    train_batches,
    weighted_batches,
)
from adapter_bert_tf.data.tagging.windows import make_windows
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.task_types.tags import TAGS

LENGTH = 16
SENTENCES = [
    ["The", "zebra", "plays", "\ufe0f", "."],
    ["cat"],
    ["dog", "sat"] * 12,  # Two windows.
    [],
    ["playss", "on"],
]
LABELS = [[0, 1, 2, 5, 3], [4], [1, 2] * 12, [], [3, 0]]


@pytest.fixture(scope="module")
def windows(tiny_base_folder):
    vocabulary = read_vocabulary(f"{tiny_base_folder}/vocab.txt")
    return make_windows(SENTENCES, TextEncoder(vocabulary, LENGTH), LENGTH, 4)


@pytest.fixture(scope="module")
def features(windows):
    return features_of(windows, LABELS)


def test_features(windows, features):
    assert features.lengths.tolist() == [7, 3, 16, 16, 6] and len(features) == len(windows) == 5
    assert features.cut.tolist() == [False, False, True, True, False]
    # Position of the first piece, and label id; the fourth word has no piece.
    assert features.labels[0].numpy().tolist() == [[1, 0], [2, 1], [3, 2], [5, 3]]
    assert features.labels[4].numpy().tolist() == [[1, 3], [4, 0]]
    assert not features.types.flat_values.numpy().any()


def test_words_of_several_taggers_count_alike(windows, features):
    """Tags are numbered over all tasks; each of five words in a batch of three rows counts 3/5."""
    other = dataclasses.replace(features, labels=TAGS.mixed_labels(features.labels, 6))
    mixed = concatenate([features, other])
    ((inputs, labels),) = weighted_batches(mixed, np.array([[4, 6, 9]]), LENGTH, pad_to=None)
    assert inputs["task_ids"].numpy().tolist() == [0, 1, 1]
    expected = np.zeros([3, LENGTH, 2], np.float32)
    expected[0, 1], expected[0, 4] = (3, 3 / 5), (0, 3 / 5)
    expected[1, 1] = (4 + 6, 3 / 5)
    expected[2, 1], expected[2, 4] = (3 + 6, 3 / 5), (0 + 6, 3 / 5)
    np.testing.assert_array_equal(labels, expected)


def test_labels_and_weights_of_a_batch(features):
    """Three words in a batch of two rows: each counts 2/3."""
    ((inputs, labels),) = weighted_batches(features, np.array([[4, 1]]), LENGTH, pad_to=4)
    assert {name: value.shape.as_list() for name, value in inputs.items()} == {
        name: [2, 8] for name in ("input_word_ids", "input_mask", "input_type_ids")
    }
    expected = np.zeros([2, 8, 2], np.float32)
    expected[0, 1], expected[0, 4], expected[1, 1] = (3, 2 / 3), (0, 2 / 3), (4, 2 / 3)
    np.testing.assert_array_equal(labels, expected)


def test_every_word_counts_once_in_an_epoch(features):
    batches = train_batches(features, 5, 1, 0, LENGTH)
    ((_, labels),) = batches
    words = np.sum(labels[..., 1] > 0)
    assert words == 31 == sum(map(len, LABELS)) - 1
    np.testing.assert_allclose(np.sum(labels[..., 1]), 5, rtol=1e-6)
    found = sorted(labels[..., 0].numpy()[labels[..., 1] > 0].astype(int))
    assert found == sorted([0, 1, 2, 3, 4, *[1, 2] * 12, 3, 0])


def as_arrays(batches):
    return [(inputs["input_word_ids"].numpy(), labels.numpy()) for inputs, labels in batches]


def assert_same(some, others):
    for (ids, labels), (other_ids, other_labels) in zip(some, others, strict=True):
        np.testing.assert_array_equal(ids, other_ids)
        np.testing.assert_array_equal(labels, other_labels)


def test_the_same_seed_gives_the_same_batches_also_after_a_stop(features):
    first = as_arrays(train_batches(features, 2, 6, 7, LENGTH))
    assert_same(first, as_arrays(train_batches(features, 2, 6, 7, LENGTH)))
    assert_same(first[4:], as_arrays(train_batches(features, 2, 6, 7, LENGTH, start=4)))


@pytest.mark.parametrize(("hosts", "local"), [(1, 2), (2, 1), (2, 2)])
def test_hosts_share_the_words_of_a_batch(features, hosts, local):
    whole = as_arrays(train_batches(features, 4, 3, 7, LENGTH))
    parts = [
        as_arrays(
            train_batches(
                features, 4, 3, 7, LENGTH, shard=HostShard(hosts * local, host * local, local)
            )
        )
        for host in range(hosts)
    ]
    for step, (ids, labels) in enumerate(whole):
        rows = [part[step * local + i] for part in parts for i in range(local)]
        np.testing.assert_array_equal(np.concatenate([row for row, _ in rows]), ids)
        np.testing.assert_array_equal(np.concatenate([row for _, row in rows]), labels)


def test_parts_of_a_batch_together_are_the_mean_over_words(features):
    """As gradient accumulation computes it: the mean over equal parts of the mean over rows."""
    for inputs, labels in train_batches(features, 4, 3, 7, LENGTH):
        losses = tf.random.stateless_uniform(tf.shape(inputs["input_word_ids"]), [1, 2])
        counted = labels[..., 1] > 0
        by_row = tf.reduce_sum(labels[..., 1] * losses, -1)
        parts = [tf.reduce_mean(part) for part in tf.split(by_row, 2)]
        expected = tf.reduce_mean(tf.boolean_mask(losses, counted))
        np.testing.assert_allclose(tf.reduce_mean(parts), expected, rtol=1e-5)


@pytest.mark.parametrize("pad_to", [8, None])
def test_static_shapes(features, pad_to):
    inputs, labels = train_batches(features, 2, 3, 0, LENGTH, pad_to).element_spec
    length = None if pad_to else LENGTH
    assert labels.shape.as_list() == [2, length, 2] and labels.dtype == tf.float32
    assert all(value.shape.as_list() == [2, length] for value in inputs.values())


def test_evaluation_has_every_window_once(windows):
    features = features_of(windows)
    plan = eval_plan(features, 2)
    assert sorted(plan.ravel().tolist()) == [-1, 0, 1, 2, 3, 4]
    rows = [inputs["input_mask"].numpy().sum(-1) for inputs in eval_batches(features, plan, LENGTH)]
    np.testing.assert_array_equal(rows, windows.lengths[np.maximum(plan, 0)])
