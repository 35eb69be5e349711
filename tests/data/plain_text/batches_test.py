"""Batches of packed sequences: each one once an epoch, the same for any number of hosts."""

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.plain_text.batches import Sequences, eval_batches, spread, train_batches
from adapter_bert_tf.data.plain_text.masking import Masking
from adapter_bert_tf.data.plain_text.packed_file import cached_sequences

LENGTH, COUNT = 8, 21
MASKING = Masking(0.3, False, 4, np.arange(200) < 5, np.zeros(200, bool))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Sequences whose pieces are 10 times their number, so that they can be told apart."""

    def pack(counts):
        rows = np.repeat(np.arange(COUNT)[:, None] + 20, LENGTH, 1).astype(np.int32)
        rows[:, 0], rows[:, -1] = 2, 3
        yield rows[:-1]
        yield rows[-1:, :4]

    return cached_sequences(str(tmp_path_factory.mktemp("cache")), {}, 200, LENGTH, pack)


@pytest.mark.parametrize(
    ("count", "chosen", "expected"), [(10, 2, [2, 7]), (3, 3, [0, 1, 2]), (5, 1, [2])]
)
def test_sequences_at_equal_distances(count, chosen, expected):
    assert spread(count, chosen).tolist() == expected


@pytest.mark.parametrize("left_out", [[], [0], [2, 3, 7], [20], [0, 1, 19, 20]])
def test_sequences_without_some(file, left_out):
    part = Sequences(file, np.array(left_out, np.int64))
    expected = [row for row in range(COUNT) if row not in left_out]
    assert part.rows(np.arange(len(part))).tolist() == expected


def batches(file, steps, start=0, shard=None, left_out=(5, 15), batch_size=4, seed=1):
    part = Sequences(file, np.array(left_out, np.int64))
    more = () if shard is None else (shard,)
    data = train_batches(part, MASKING, batch_size, steps, seed, start, *more)
    return [tf.nest.map_structure(lambda x: x.numpy(), element) for element in data]


def numbers(batch):
    """The numbers of the sequences of a batch, by their targets."""
    _, labels = batch
    assert (labels[:, 0, 1] > 0).all()
    return (labels[:, 0, 0] - 20).astype(int).tolist()


def test_each_sequence_comes_once_in_an_epoch(file):
    made = batches(file, steps=10)
    seen = [number for batch in made for number in numbers(batch)]
    expected = [row for row in range(COUNT) if row not in (5, 15)]
    assert sorted(seen[:19]) == sorted(seen[19:38]) == expected and seen[:19] != seen[19:38]
    for step, (inputs, labels) in enumerate(made):
        # 6 pieces: 2 chosen; the shorter last sequence has 2: 1.
        short = [row == COUNT - 1 for row in numbers(made[step])]
        assert inputs["input_mask"].sum(-1).tolist() == [4 if s else 8 for s in short]
        used = (labels[..., 1] > 0).sum(-1)
        assert used.tolist() == [1 if s else 2 for s in short]
        np.testing.assert_allclose(labels[..., 1].sum(), 4, rtol=1e-6)
        assert inputs["masked_positions"].shape == labels.shape[:2] == (4, 2)


def test_a_run_that_goes_on_sees_the_same_batches(file):
    for a, b in zip(batches(file, 10)[6:], batches(file, 10, start=6), strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, a, b)


def test_hosts_share_each_batch(file):
    whole = batches(file, 6)
    parts = [batches(file, 6, shard=HostShard(4, first, 2)) for first in (0, 2)]
    for step, batch in enumerate(whole):
        replicas = [part[2 * step + i] for part in parts for i in (0, 1)]
        joined = tf.nest.map_structure(lambda *rows: np.concatenate(rows), *replicas)
        tf.nest.map_structure(np.testing.assert_array_equal, batch, joined)


def test_evaluations_have_the_same_masks_whatever_the_batch(file):
    rows = np.array([1, 4, 20, 9, 12])

    def read(size):
        data = [tf.nest.map_structure(np.array, b) for b in eval_batches(file, rows, MASKING, size)]
        return {name: np.concatenate([b[name] for b in data]) for name in data[0]}

    two, five = read(2), read(5)
    assert two["masked_weights"].sum(-1).tolist() == [2, 2, 1, 2, 2, 0]
    for name, values in five.items():
        np.testing.assert_array_equal(two[name][:5], values)
    assert (five["masked_ids"][:, 0] - 20).tolist() == rows.tolist()
    assert not (two["input_word_ids"] == five["masked_ids"][0, 0]).all()


def test_no_steps_make_no_batches(file):
    assert batches(file, 0) == batches(file, 3, start=3) == []
