"""Shares of a host: together the global batches, in their order."""

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard

ROWS = np.arange(24).reshape(3, 8)  # Three steps of eight rows.
WIDTHS = np.array([5, 6, 7])


def split(share):
    dataset = tf.data.Dataset.from_tensor_slices((ROWS, WIDTHS))
    return [(rows.numpy().tolist(), int(width)) for rows, width in share.split(dataset)]


def test_one_replica_has_everything():
    assert split(WHOLE_BATCH) == [
        (row.tolist(), width) for row, width in zip(ROWS, WIDTHS, strict=True)
    ]


@pytest.mark.parametrize(("hosts", "local"), [(1, 2), (2, 1), (2, 2), (4, 2), (1, 8)])
def test_the_hosts_together_have_every_row_of_a_step_once(hosts, local):
    shares = [HostShard(hosts * local, host * local, local) for host in range(hosts)]
    parts = [split(share) for share in shares]
    assert all(len(part) == len(ROWS) * local for part in parts)
    for step, (rows, width) in enumerate(zip(ROWS, WIDTHS, strict=True)):
        of_step = [part[step * local + i] for part in parts for i in range(local)]
        assert [row for mine, _ in of_step for row in mine] == rows.tolist()
        assert {given for _, given in of_step} == {width}


def test_static_shapes_stay_static():
    dataset = tf.data.Dataset.from_tensor_slices((ROWS, WIDTHS))
    assert HostShard(4, 2, 2).split(dataset).element_spec[0].shape == (2,)


@pytest.mark.parametrize(("pipelines", "index", "first", "local"), [(1, 0, 0, 8), (4, 3, 6, 2)])
def test_from_tensorflows_context(pipelines, index, first, local):
    context = tf.distribute.InputContext(pipelines, index, 8)
    assert HostShard.from_context(context) == HostShard(8, first, local)
