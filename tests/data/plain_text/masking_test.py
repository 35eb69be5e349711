"""Masks: their shares, what they leave alone, and what they depend on."""

import dataclasses

import numpy as np
import pytest

from adapter_bert_tf.data.on_disk.order import random_bits, shuffled, uniform
from adapter_bert_tf.data.plain_text.masking import Masking
from tests.refusals import raises_code

MASK, WORDS, LENGTH = 4, 100, 40  # Pieces 0 to 4 are special; 90 and later continue a word.
IS_SPECIAL = np.arange(WORDS) < 5
PLAIN = Masking(0.15, False, MASK, IS_SPECIAL, np.arange(WORDS) >= 90)
WHOLE = dataclasses.replace(PLAIN, whole_words=True)


def sequences(rows, lengths=None):
    rng = np.random.default_rng(0)
    ids = rng.integers(5, WORDS, (rows, LENGTH)).astype(np.int32)
    ids[:, 0], ids[:, 17], ids[:, -1] = 2, 3, 3
    lengths = np.full(rows, LENGTH, np.int32) if lengths is None else np.array(lengths, np.int32)
    ids[np.arange(LENGTH) >= lengths[:, None]] = 0
    return ids, lengths


def mask(masking, ids, lengths, seed=0, step=0):
    return masking.mask(ids, lengths, seed, step, np.arange(len(ids)))


@pytest.mark.parametrize("masking", [PLAIN, WHOLE])
def test_shares_and_what_is_left_alone(masking):
    ids, lengths = sequences(2000)
    made = mask(masking, ids, lengths)
    # 37 of 40 positions can be chosen: round(0.15 * 37) = 6 of at most 6 places.
    assert masking.places(LENGTH) == 6 and made.used.all() and made.positions.shape == (2000, 6)
    assert (np.diff(made.positions, axis=-1) > 0).all()
    before = np.take_along_axis(ids, made.positions, -1)
    after = np.take_along_axis(made.ids, made.positions, -1)
    assert (made.targets == before).all() and not IS_SPECIAL[before].any()
    unchanged = made.ids.copy()
    np.put_along_axis(unchanged, made.positions, before, -1)
    assert (unchanged == ids).all()
    # A random piece is by chance the same one of 95 in a hundredth of a tenth.
    shares = [(after == MASK).mean(), ((after != before) & (after != MASK)).mean()]
    np.testing.assert_allclose(shares, [0.8, 0.1 * 94 / 95], atol=0.01)
    drawn = after[(after != before) & (after != MASK)]
    assert set(drawn) == set(range(5, WORDS))
    counts = np.bincount(made.positions.ravel(), minlength=LENGTH)
    assert counts[0] == counts[17] == counts[-1] == 0
    if masking is PLAIN:  # Every other position as often as the others.
        others = np.delete(counts, [0, 17, 39])
        assert abs(others - 12000 / 37).max() < 5 * np.sqrt(12000 / 37)


def test_short_sequences_use_fewer_places():
    ids, lengths = sequences(4, [40, 20, 3, 2])
    ids[3, 1] = 1  # Nothing but special pieces.
    made = mask(PLAIN, ids, lengths)
    # Of 37, 18 (one is a [SEP]), 2 and no pieces.
    assert made.used.sum(-1).tolist() == [6, 3, 1, 0]
    assert (made.positions[~made.used] == 0).all() and (made.positions < lengths[:, None]).all()
    assert (made.ids[3] == ids[3]).all()


def test_masks_depend_on_seed_step_and_row_alone():
    ids, lengths = sequences(8)
    ids[:] = ids[0]
    made = mask(PLAIN, ids, lengths, 3, 5)
    again = mask(PLAIN, ids, lengths, 3, 5)
    for a, b in zip(made, again, strict=True):
        assert (a == b).all()
    part = PLAIN.mask(ids[2:4], lengths[2:4], 3, 5, np.array([2, 3]))
    assert (part.ids == made.ids[2:4]).all() and (part.positions == made.positions[2:4]).all()
    assert len({tuple(row) for row in made.positions.tolist()}) == 8
    for other in (mask(PLAIN, ids, lengths, 4, 5), mask(PLAIN, ids, lengths, 3, 6)):
        assert (other.positions != made.positions).any(-1).all()


def test_the_numbers_stay_the_same_in_all_versions():
    """A run that began with another version of NumPy or of this package goes on with its masks."""
    assert random_bits(0).tolist() == 0xE220A8397B1DCDAF  # The first number of SplitMix64.
    two = random_bits(7, 3, np.array([0, 1])).tolist()
    assert two == [6875110694074790513, 8291948987866145469]
    assert shuffled(np.arange(6), 6, 1, np.zeros(6, int)).tolist() == [0, 4, 5, 3, 2, 1]


def test_whole_words_are_masked_whole():
    ids, lengths = sequences(500)
    made = mask(WHOLE, ids, lengths)
    starts = ~(WHOLE.continues[ids] & ~IS_SPECIAL[np.roll(ids, 1, -1)])
    words, partial = np.cumsum(starts, -1), 0
    for row in range(500):
        chosen = words[row][made.positions[row]]
        sizes = {word: (words[row] == word).sum() for word in chosen}
        partial += sum((chosen == word).sum() < size for word, size in sizes.items())
    assert partial < 25  # Only where no word fits into the last places.
    ids = np.array([[2, 50, 91, 92, 51, 52, 3]], np.int32)  # Words of 3, 1 and 1 pieces.
    three = dataclasses.replace(WHOLE, share=0.4)
    seen = set()
    for step in range(60):
        masked = mask(three, ids, np.array([7], np.int32), step=step)
        seen.add(tuple(masked.positions[0][masked.used[0]].tolist()))
    assert seen == {(4, 5)}  # 2 of 5 pieces: the long word does not fit.


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_shares_outside_are_refused(share):
    with raises_code("invalid", "mask_share"):
        dataclasses.replace(PLAIN, share=share)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 16, 17, 100, 1000])
def test_an_order_has_every_number_once_in_each_epoch(count):
    orders = [
        shuffled(np.arange(count), count, seed, np.full(count, epoch))
        for seed in (0, 1)
        for epoch in (0, 1)
    ]
    for order in orders:
        assert sorted(order.tolist()) == list(range(count))
    if count >= 16:
        assert len({tuple(order.tolist()) for order in orders}) == 4
    part = shuffled(np.arange(count)[count // 2 :], count, 1, np.full(count - count // 2, 1))
    assert (part == orders[3][count // 2 :]).all()


def test_a_long_order_is_random():
    count = 20_000_000
    order = shuffled(np.arange(100_000), count, 0, np.zeros(100_000, int))
    assert len(set(order.tolist())) == 100_000 and order.min() >= 0 and order.max() < count
    assert abs(order.mean() / count - 0.5) < 0.005
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.02


def test_random_numbers_are_uniform():
    numbers = uniform(random_bits(0, np.arange(1000)[:, None], np.arange(100)))
    assert numbers.min() >= 0 and numbers.max() < 1
    counts, _ = np.histogram(numbers, 10, (0, 1))
    assert abs(counts - 10_000).max() < 500
