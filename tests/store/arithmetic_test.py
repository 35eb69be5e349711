"""Combining weights: hand-computed values, and PEFT's own functions."""

import numpy as np
import pytest

from adapter_bert_tf.store.combining import arithmetic
from adapter_bert_tf.store.combining.arithmetic import METHODS, options_for

# Two adapters with one variable of four values.
STACK = np.array([[4.0, -1.0, 2.0, 0.5], [-2.0, -3.0, 1.0, 0.25]])
# Method, shares, density, expected.
CASES = [
    ("mean", (), 1.0, [1.0, -2.0, 1.5, 0.375]),
    ("mean", (3.0, 1.0), 1.0, [2.5, -1.5, 1.75, 0.4375]),
    ("sum", (), 1.0, [1.0, -2.0, 1.5, 0.375]),
    ("sum", (1.0, -1.0), 1.0, [6.0, 2.0, 1.0, 0.25]),
    # Kept: 4 and 2 of the first, -2 and -3 of the second; the first place is elected positive.
    ("ties", (), 0.5, [4.0, -3.0, 2.0, 0.0]),
    ("ties", (), 1.0, [4.0, -2.0, 1.5, 0.375]),
    # At least one value is kept: 4 of the first, -3 of the second.
    ("ties", (), 0.1, [4.0, -3.0, 0.0, 0.0]),
    ("ties", (0.5, 2.0), 1.0, [2.0, -3.25, 1.5, 0.375]),
    ("dare", (), 1.0, [1.0, -2.0, 1.5, 0.375]),
]


@pytest.mark.parametrize(("method", "shares", "density", "expected"), CASES)
def test_by_hand(method, shares, density, expected):
    options = options_for(method, len(STACK), shares, density)
    np.testing.assert_allclose(METHODS[method].combine(STACK, options), expected, rtol=1e-12)


def test_dare_keeps_the_mean_and_its_seed():
    stack = np.ones((2, 200, 300))
    first, again, other = (
        METHODS["dare"].combine(stack, options_for("dare", 2, density=0.25, seed=seed))
        for seed in (1, 1, 2)
    )
    assert abs(first.mean() - 1) < 0.02
    np.testing.assert_array_equal(np.unique(first), [0, 2, 4])
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parity
@pytest.mark.parametrize("density", [0.2, 0.5, 1.0])
def test_ties_and_sum_as_in_peft(density):
    torch = pytest.importorskip("torch")
    from peft.utils import merge_utils

    stack = np.random.default_rng(0).normal(size=(3, 20, 7))
    shares = (0.5, 1.0, 1.5)
    tensors, weights = [torch.tensor(x) for x in stack], torch.tensor(shares, dtype=torch.float64)
    expected = merge_utils.ties(tensors, weights, density)
    given = arithmetic.ties(stack, options_for("ties", 3, shares, density))
    np.testing.assert_allclose(given, expected.numpy(), rtol=1e-9, atol=1e-12)
    summed = merge_utils.task_arithmetic(tensors, weights)
    options = options_for("sum", 3, shares)
    np.testing.assert_allclose(arithmetic.weighted_sum(stack, options), summed.numpy(), rtol=1e-9)
