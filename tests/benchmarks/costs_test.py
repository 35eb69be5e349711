"""What a step needs, counted by hand."""

import types

import pytest

from benchmarks import costs

SIZES = {"hidden_size": 2, "inner_dim": 3, "num_attention_heads": 1}


@pytest.mark.parametrize(
    ("layers", "length", "expected"),
    [
        # One query: 2 * (2*4 + 2*6) * 2 and adapters 2 * 2 * 12; keys and values 2 * 8 * 2;
        # attention 12 * 2.
        (1, 1, 128 + 32 + 24),
        # Below it three positions: three times the first two, and 12 * 3 * 3 * 2.
        (2, 3, 3 * 128 + 3 * 32 + 216 + 128 + 32 + 72),
    ],
)
def test_operations_of_a_step(layers, length, expected):
    sizes = types.SimpleNamespace(num_layers=layers, **SIZES)
    assert costs.needed(sizes, length, batch=1, size=1) == expected
