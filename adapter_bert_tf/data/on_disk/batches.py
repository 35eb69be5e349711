"""Training batches of stored rows: an order of any number of them as a function of the seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from adapter_bert_tf.data.batches import map_and_prefetch, pool_sizes
from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard
from adapter_bert_tf.data.on_disk.order import random_bits, shuffled
from adapter_bert_tf.data.on_disk.stored_table import StoredTable
from adapter_bert_tf.data.padding import PadTo, padded_lengths
from adapter_bert_tf.lazy import tf


@dataclasses.dataclass(frozen=True)
class TrainingRows:
    """Stored rows to train on.

    Args:
      table: the rows.
      labels: function from the labels of `ENTRY` to those of the training: int32 or float32
        `[rows]`, or float32 `[rows, labels]`.
    """

    table: StoredTable
    labels: Callable[[np.ndarray], np.ndarray]

    def __len__(self) -> int:
        return len(self.table)


def train_batches(
    rows: TrainingRows,
    batch_size: int,
    steps: int,
    seed: int,
    max_seq_length: int,
    pad_to: PadTo = 8,
    group_by_length: str = "epoch",
    start: int = 0,
    shard: HostShard = WHOLE_BATCH,
) -> tf.data.Dataset:
    """Makes shuffled training batches of stored rows; see `data.batches.train_batches`.

    Each epoch has every row once, in a random order of all rows; pools of batches are sorted by
    length. Batches are functions of seed and step: nothing is stored, and a run that goes on, and
    each of several hosts, computes the same ones.
    """
    grouped = bool(pad_to) and group_by_length != "no"
    sizes = pool_sizes(len(rows), batch_size, steps, group_by_length if grouped else "run")
    ends = np.unique(np.minimum(np.cumsum([0, *sizes]), steps))
    first = int(np.searchsorted(ends, start, side="right")) - 1

    def plan(number: int) -> tuple[np.ndarray, np.ndarray]:
        places = np.arange(ends[number] * batch_size, ends[number + 1] * batch_size)
        epochs, positions = np.divmod(places, len(rows))
        numbers = shuffled(positions, len(rows), seed, epochs)
        lengths = rows.table.announce(numbers)["length"].astype(np.int64)
        if grouped:
            order = np.argsort(lengths, kind="stable")
            batches = np.argsort(random_bits(seed, number, np.arange(len(places) // batch_size)))
            order = order.reshape(-1, batch_size)[batches].reshape(-1)
            numbers, lengths = numbers[order], lengths[order]
        longest = lengths.reshape(-1, batch_size).max(-1, initial=1)
        widths = padded_lengths(longest, pad_to, max_seq_length)
        return numbers.reshape(-1, batch_size), widths

    def planned(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        batches, widths = tf.numpy_function(
            lambda n: plan(int(n)), [number], [tf.int64, tf.int64], stateful=False
        )
        return tf.ensure_shape(batches, [None, batch_size]), tf.ensure_shape(widths, [None])

    pools = tf.data.Dataset.range(first, max(len(ends) - 1, first))
    planning = pools.map(planned, num_parallel_calls=1, deterministic=True).prefetch(1).unbatch()
    planning = shard.split(planning.skip(start - int(ends[first])))
    shape = [batch_size // shard.replicas, None if pad_to else max_seq_length]
    return map_and_prefetch(planning, lambda *pair: _gathered(rows, shape, *pair))


def _gathered(
    rows: TrainingRows, shape: list[int | None], numbers: tf.Tensor, width: tf.Tensor
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Inputs `[rows, width]` and labels of the rows with these numbers."""
    example = rows.labels(np.zeros(1, np.int32))

    def read(numbers: np.ndarray, width: np.ndarray) -> list[np.ndarray]:
        entries = rows.table.entries(numbers)
        return [*rows.table.inputs(entries, int(width)), rows.labels(entries["label"])]

    types = [tf.int32] * 3 + [tf.as_dtype(example.dtype)]
    *arrays, labels = tf.numpy_function(read, [numbers, width], types, stateful=False)
    names = ("input_word_ids", "input_type_ids", "input_mask")
    inputs = {name: tf.ensure_shape(x, shape) for name, x in zip(names, arrays, strict=True)}
    return inputs, tf.ensure_shape(labels, [shape[0], *example.shape[1:]])
