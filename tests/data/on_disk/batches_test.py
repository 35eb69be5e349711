"""Batches of stored rows: every row once an epoch, the same after a resume, hosts with parts."""

import numpy as np
import pytest

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data import batches as in_memory_batches
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.on_disk.batches import train_batches
from adapter_bert_tf.data.tokenization import TextEncoder
from tests.data.on_disk import tables

LENGTH, ROWS, BATCH = 16, 100, 10
STEPS = 2 * ROWS // BATCH
KINDS = {"classification": (), "multi_label": (2,), "regression": ()}


@pytest.fixture(scope="module")
def encoder(tiny_base_folder):
    return TextEncoder(read_vocabulary(f"{tiny_base_folder}/vocab.txt"), LENGTH)


@pytest.fixture(scope="module")
def made(encoder, tmp_path_factory):
    """Dict from type to (`Features`, `TrainingRows`)."""
    pairs = {}
    for kind in KINDS:
        folder = tmp_path_factory.mktemp(kind)
        features, task = tables.in_memory(folder, tables.write(folder, ROWS, kind), encoder)
        table = tables.stored(folder, task, encoder, folder / "cache")
        pairs[kind] = features, tables.training_rows(table, task)
    return pairs


def made_batches(rows, steps=STEPS, **more):
    return list(train_batches(rows, BATCH, steps, 5, LENGTH, **more))


def same(one, other):
    return len(one) == len(other) and all(
        all(np.array_equal(a[name], b[name]) for name in a) and np.array_equal(y, z)
        for (a, y), (b, z) in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("group", ["epoch", "run", "no"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_has_every_row_once_with_its_label(kind, group, made):
    features, rows = made[kind]
    batches = made_batches(rows, group_by_length=group)
    expected = list(
        in_memory_batches.train_batches(features, BATCH, STEPS, 5, LENGTH, group_by_length=group)
    )
    assert [inputs["input_mask"].dtype for inputs, _ in batches[:1]] == ["int32"]
    assert batches[0][1].dtype == expected[0][1].dtype
    assert batches[0][1].shape == (BATCH, *KINDS[kind])
    epochs = [batches] if group == "run" else [batches[: STEPS // 2], batches[STEPS // 2 :]]
    for epoch in epochs:
        here = [expected[i] for i in range(len(epoch))]
        assert tables.counted(epoch) == tables.counted(here)
    assert tables.counted(batches[:3]) != tables.counted(batches[STEPS // 2 : STEPS // 2 + 3])


@pytest.mark.parametrize("start", [0, 1, 7, STEPS - 1, STEPS])
def test_a_resumed_run_has_the_same_batches(start, made):
    _, rows = made["classification"]
    whole = made_batches(rows)
    assert len(whole) == STEPS and same(made_batches(rows, start=start), whole[start:])


def test_another_number_of_steps_begins_alike_and_another_seed_does_not(made):
    _, rows = made["classification"]
    whole = made_batches(rows)
    assert same(made_batches(rows, steps=10), whole[:10])
    other = list(train_batches(rows, BATCH, STEPS, 6, LENGTH))
    assert not same(other, whole)


def test_hosts_read_disjoint_rows_of_the_same_batches(made):
    _, rows = made["multi_label"]
    whole = made_batches(rows)
    hosts = [made_batches(rows, shard=HostShard(2, first, 1)) for first in (0, 1)]
    for (inputs, labels), *parts in zip(whole, *hosts, strict=True):
        joined = {name: np.concatenate([part[0][name] for part in parts]) for name in inputs}
        assert same([(joined, np.concatenate([y for _, y in parts]))], [(inputs, labels)])
    local = made_batches(rows, shard=HostShard(2, 0, 2))
    assert same(local[::2], hosts[0]) and same(local[1::2], hosts[1])


def test_batches_are_padded_to_their_longest_row(made):
    _, rows = made["classification"]
    widths = [inputs["input_mask"].shape[1] for inputs, _ in made_batches(rows, pad_to=1)]
    longest = [int(i["input_mask"].numpy().sum(1).max()) for i, _ in made_batches(rows, pad_to=1)]
    assert widths == longest and len(set(widths)) > 1
    fixed = made_batches(rows, pad_to=None)
    assert {inputs["input_mask"].shape[1] for inputs, _ in fixed} == {LENGTH}
    lengths = [np.ptp(i["input_mask"].numpy().sum(1)) for i, _ in made_batches(rows)]
    unsorted = [np.ptp(i["input_mask"].numpy().sum(1)) for i, _ in fixed]
    assert np.mean(lengths) < np.mean(unsorted)
