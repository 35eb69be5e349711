"""Several tasks in one batch: the shares that were asked for, and every example in its turn."""

import math

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.data.batches import Features
from adapter_bert_tf.data.mixture import (
    concatenate,
    parse_temperature,
    plan_mixture,
    task_proportions,
)
from tests.refusals import raises_code

COUNTS = (8_551, 3_668, 2_490, 10)


def drawn(plan, counts):
    """How often each task is in a plan."""
    tasks = np.searchsorted(np.cumsum(counts), plan.reshape(-1), side="right")
    return np.bincount(tasks, minlength=len(counts))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10", 10.0), ("1", 1.0), ("2.5", 2.5), ("inf", math.inf), ("annealed", "annealed")],
)
def test_a_temperature_is_read(text, expected):
    assert parse_temperature(text) == expected


@pytest.mark.parametrize("text", ["0", "0.9", "-1", "nan", "", "hot", "1e400x"])
def test_a_wrong_temperature_is_refused(text):
    with raises_code("invalid", "a number from 1"):
        parse_temperature(text)


@pytest.mark.parametrize(
    ("temperature", "epoch", "expected"),
    [
        (1, 1, [0.1, 0.9]),
        (2, 1, [1 / 4, 3 / 4]),
        (math.inf, 1, [0.5, 0.5]),
        ("annealed", 1, [0.1, 0.9]),
        ("annealed", 3, [1 / (1 + 9**0.6), 9**0.6 / (1 + 9**0.6)]),
        ("annealed", 5, [1 / (1 + 9**0.2), 9**0.2 / (1 + 9**0.2)]),
    ],
)
def test_shares_by_hand(temperature, epoch, expected):
    np.testing.assert_allclose(
        task_proportions([100, 900], temperature, epoch, 5), expected, rtol=1e-12
    )


def test_the_annealed_form_of_one_epoch_is_proportional():
    np.testing.assert_allclose(task_proportions([1, 3], "annealed", 1, 1), [0.25, 0.75])


def test_shares_of_very_large_and_small_tasks_are_finite():
    found = task_proportions([1, 10**9], 1)
    assert np.isfinite(found).all() and found[0] == pytest.approx(1e-9, rel=1e-6)


@pytest.mark.parametrize("temperature", [1, 2, 10, math.inf])
def test_the_rows_that_are_drawn_have_these_shares(temperature):
    plan = plan_mixture(COUNTS, np.full(sum(COUNTS), 5), 32, 313, 0, temperature)
    expected = task_proportions(COUNTS, temperature)
    deviation = np.sqrt(expected * (1 - expected) / plan.size)
    assert plan.size > 10_000
    assert (np.abs(drawn(plan, COUNTS) / plan.size - expected) < 4 * deviation).all()


@pytest.mark.parametrize("epochs", [3, 2.2])
@pytest.mark.parametrize("group_by_length", [None, "epoch", "run"])
def test_annealed_rows_have_the_shares_of_their_epoch(group_by_length, epochs):
    lengths = np.repeat(np.arange(len(COUNTS)), COUNTS)  # Short tasks and long ones.
    plan = plan_mixture(COUNTS, lengths, 32, 1_000, 0, "annealed", epochs, group_by_length)
    for epoch, (start, end) in enumerate(((0, 333), (333, 666), (666, 1_000)), 1):
        rows = plan[start:end]
        expected = task_proportions(COUNTS, "annealed", epoch, 3)
        deviation = np.sqrt(expected * (1 - expected) / rows.size)
        assert (np.abs(drawn(rows, COUNTS) / rows.size - expected) < 4 * deviation).all(), epoch


@pytest.mark.parametrize("group_by_length", [None, "epoch"])
def test_each_example_of_a_task_comes_before_one_comes_again(group_by_length):
    counts = (40, 7)
    plan = plan_mixture(counts, np.arange(47), 4, 50, 3, 2, group_by_length=group_by_length)
    times = np.bincount(plan.reshape(-1), minlength=47)
    for task in (times[:40], times[40:]):
        assert task.max() - task.min() <= 1


def test_a_plan_is_a_function_of_its_arguments():
    arguments = (COUNTS, np.arange(sum(COUNTS)), 8, 20)
    one, same, other = (plan_mixture(*arguments, seed, 10) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_no_step_has_no_row():
    assert plan_mixture((3, 4), np.ones(7), 2, 0, 0, 10).shape == (0, 2)


def test_examples_of_similar_lengths_come_together():
    lengths = np.random.default_rng(0).integers(5, 100, 2_000)
    apart = {
        by: np.ptp(
            lengths[plan_mixture((1_500, 500), lengths, 8, 200, 0, 10, 1, by)], axis=1
        ).mean()
        for by in (None, "epoch")
    }
    assert apart["epoch"] < apart[None] / 4, apart


def test_features_of_several_tasks_keep_their_rows():
    parts = [
        Features(
            tf.ragged.constant(rows, dtype=tf.int32),
            tf.ragged.map_flat_values(tf.zeros_like, tf.ragged.constant(rows, dtype=tf.int32)),
            tf.constant(labels),
            np.array([len(row) for row in rows]),
            np.zeros(len(rows), bool),
        )
        for rows, labels in (([[1, 2], [3]], [[0.0, 0.0], [1.0, 0.0]]), ([[4, 5, 6]], [[2.0, 3.5]]))
    ]
    found = concatenate(parts)
    assert found.ids.to_list() == [[1, 2], [3], [4, 5, 6]]
    assert found.task_ids.tolist() == [0, 0, 1]
    assert found.lengths.tolist() == [2, 1, 3]
    np.testing.assert_array_equal(found.labels, [[0, 0], [1, 0], [2, 3.5]])
