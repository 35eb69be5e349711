"""Random divisions: shares, seeds, duplicates on one side, labels in proportion."""

import collections

import numpy as np
import pytest

from adapter_bert_tf.data.splits import random_split, stratified_subset

SHARES = (0.8, 0.1, 0.1)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    keys = [("text", int(i)) for i in rng.integers(0, 900, 1000)]  # Many come twice.
    labels = [(str(i),) for i in rng.choice(5, 1000, p=[0.6, 0.3, 0.08, 0.015, 0.005])]
    return keys, labels


def test_divides_everything_once_in_shares(data):
    keys, labels = data
    parts = random_split(keys, labels, SHARES, 0)
    assert sorted(i for part in parts for i in part) == list(range(1000))
    assert [len(part) for part in parts] == pytest.approx([800, 100, 100], abs=5)
    assert all(part == sorted(part) for part in parts)


def test_duplicates_stay_on_one_side(data):
    keys, labels = data
    parts = [{keys[i] for i in part} for part in random_split(keys, labels, SHARES, 3)]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


@pytest.mark.parametrize("seed", range(5))
def test_every_label_is_in_training(data, seed):
    keys, labels = data
    assert {labels[i] for i in random_split(keys, labels, SHARES, seed)[0]} == set(labels)
    sets = [(*label, "all") for label in labels]
    assert random_split(keys, sets, SHARES, seed)[0] == random_split(keys, labels, SHARES, seed)[0]


def test_every_label_is_in_training_even_if_all_are_rare():
    parts = random_split(range(30), [(str(i),) for i in range(30)], SHARES, 0)
    assert [len(part) for part in parts] == [30, 0, 0]


def test_the_seed_decides(data):
    assert (
        random_split(*data, SHARES, 1)
        == random_split(*data, SHARES, 1)
        != random_split(*data, SHARES, 2)
    )


def test_exact_shares_without_duplicates():
    assert [len(part) for part in random_split(range(3118), None, SHARES, 0)] == [2494, 312, 312]


@pytest.mark.parametrize("number", [7, 100, 501, 999])
def test_a_subset_keeps_the_proportions(data, number):
    _, labels = data
    rows = stratified_subset(labels, number, 0)
    assert len(set(rows)) == number and rows == sorted(rows)
    counts, all_counts = (collections.Counter(x) for x in ([labels[i] for i in rows], labels))
    for label, count in all_counts.items():
        assert counts[label] >= 1
        assert abs(counts[label] - count * number / 1000) <= max(1, len(all_counts) / 2)


def test_a_subset_smaller_than_the_number_of_labels(data):
    assert len(stratified_subset(data[1], 3, 0)) == 3


def test_a_subset_depends_on_the_seed(data):
    assert (
        stratified_subset(data[1], 50, 1)
        == stratified_subset(data[1], 50, 1)
        != stratified_subset(data[1], 50, 2)
    )
