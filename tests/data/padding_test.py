"""Padded lengths, by hand, in memory and in graphs of records."""

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.data.padding import FEW_LENGTHS, allowed_lengths, padded_lengths
from adapter_bert_tf.data.questions.records import _width

LONGEST = [1, 2, 8, 9, 31, 32, 33, 100]


@pytest.mark.parametrize(
    ("pad_to", "longest", "expected"),
    [
        (8, 100, [8, 8, 8, 16, 32, 32, 40, 100]),
        (2, 100, [2, 2, 8, 10, 32, 32, 34, 100]),
        (64, 32, [32] * 8),  # Longer examples are cut.
        (None, 100, [100] * 8),
        (FEW_LENGTHS, 100, [32, 32, 32, 32, 32, 32, 64, 100]),
        (FEW_LENGTHS, 64, [32, 32, 32, 32, 32, 32, 64, 64]),
    ],
)
def test_lengths(pad_to, longest, expected):
    assert padded_lengths(np.array(LONGEST), pad_to, longest).tolist() == expected
    lengths = tf.constant(LONGEST, tf.int64)
    assert _width(lengths[:, tf.newaxis], longest, pad_to).numpy().tolist() == expected
    assert _width(lengths[:5], longest, pad_to) == expected[4]


def test_few_lengths_are_few():
    assert allowed_lengths(FEW_LENGTHS, 384).tolist() == [32, 64, 128, 256, 384]
    assert allowed_lengths(FEW_LENGTHS, 16).tolist() == [16]
