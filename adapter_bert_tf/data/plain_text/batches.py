"""Batches of packed sequences with masks, for training and evaluation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from adapter_bert_tf.data.batches import map_and_prefetch
from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard
from adapter_bert_tf.data.on_disk.order import shuffled
from adapter_bert_tf.data.plain_text.masking import (
    POSITIONS,
    TARGETS,
    WEIGHTS,
    MaskedRows,
    Masking,
)
from adapter_bert_tf.data.plain_text.packed_file import PackedFile
from adapter_bert_tf.lazy import tf

Arrays: TypeAlias = dict[str, np.ndarray]
FIXED_SEED = 0  # Of the masks of evaluations.


@dataclasses.dataclass(frozen=True)
class Sequences:
    """Some of the sequences of a file, in its order.

    Args:
      file: of all sequences.
      left_out: int `[rows]`, rising, those that are not among them.
    """

    file: PackedFile
    left_out: np.ndarray

    def __len__(self) -> int:
        return self.file.count - len(self.left_out)

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers in the file of those with these numbers here, int64."""
        # How many are left out before each: their own numbers, less those left out before them.
        before = self.left_out - np.arange(len(self.left_out))
        return numbers + np.searchsorted(before, numbers, side="right")


def spread(count: int, chosen: int) -> np.ndarray:
    """Numbers of `chosen` of `count` sequences, at equal distances; int64."""
    return ((2 * np.arange(chosen) + 1) * count) // (2 * chosen)


def train_batches(
    sequences: Sequences,
    masking: Masking,
    batch_size: int,
    steps: int,
    seed: int,
    start: int = 0,
    shard: HostShard = WHOLE_BATCH,
) -> tf.data.Dataset:
    """Makes shuffled training batches with new masks in each step, over as many epochs as needed.

    Returns:
      `tf.data.Dataset` of (inputs, labels), one element for each local replica and step: inputs as
      of `MaskedWordModel`, labels float32 `[batch, places, 2]`: the piece, and
      its weight. The weights of a batch over all replicas have the sum of its rows, so that the
      mean over rows is the mean over all pieces to predict.
    """

    def batch(step: int) -> Arrays:
        numbers = step * batch_size + np.arange(batch_size)
        epochs, positions = np.divmod(numbers, len(sequences))
        rows = sequences.rows(shuffled(positions, len(sequences), seed, epochs))
        lengths = sequences.file.lengths(rows)
        masked = masking.mask(sequences.file.read(rows), lengths, seed, step, np.arange(batch_size))
        weights = masked.used * (batch_size / max(masked.used.sum(), 1))
        return _inputs(masked, lengths, weights)

    def divide(arrays: dict[str, tf.Tensor]) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        targets, weights = arrays.pop(TARGETS), arrays.pop(WEIGHTS)
        return arrays, tf.stack([tf.cast(targets, tf.float32), weights], -1)

    places = masking.places(sequences.file.length)
    plan = range(start, steps)
    return _dataset(batch, plan, batch_size, sequences.file.length, places, shard, divide)


def eval_batches(
    file: PackedFile,
    rows: np.ndarray,
    masking: Masking,
    batch_size: int,
    shard: HostShard = WHOLE_BATCH,
) -> tf.data.Dataset:
    """Makes batches of these sequences with the same masks each time; the last one is filled up.

    Returns:
      `tf.data.Dataset` of inputs with targets and weights, 1 for each piece to predict.
    """

    def batch(number: int) -> Arrays:
        places = number * batch_size + np.arange(batch_size)
        own = rows[np.minimum(places, len(rows) - 1)]
        lengths = file.lengths(own)
        masked = masking.mask(file.read(own), lengths, FIXED_SEED, 0, own)
        return _inputs(masked, lengths, masked.used * (places < len(rows))[:, np.newaxis])

    plan = range(-(-len(rows) // batch_size))
    width = masking.places(file.length)
    return _dataset(batch, plan, batch_size, file.length, width, shard, lambda arrays: arrays)


def _inputs(masked: MaskedRows, lengths: np.ndarray, weights: np.ndarray) -> Arrays:
    mask = np.arange(masked.ids.shape[1]) < lengths[:, np.newaxis]
    return {
        "input_word_ids": masked.ids,
        "input_mask": mask.astype(np.int32),
        "input_type_ids": np.zeros_like(masked.ids),
        POSITIONS: masked.positions,
        TARGETS: masked.targets,
        WEIGHTS: weights.astype(np.float32),
    }


def _dataset(
    batch: Callable[[int], Arrays],
    plan: range,
    rows: int,
    length: int,
    places: int,
    shard: HostShard,
    finish: Callable[[dict[str, tf.Tensor]], object],
) -> tf.data.Dataset:
    """A dataset of the batches with the numbers in `plan`, this host's rows of each."""
    shapes = {
        "input_word_ids": length,
        "input_mask": length,
        "input_type_ids": length,
        POSITIONS: places,
        TARGETS: places,
        WEIGHTS: places,
    }

    def compute(number: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        types = [tf.float32 if name == WEIGHTS else tf.int32 for name in shapes]
        values = tf.numpy_function(
            lambda n: list(batch(int(n)).values()), [number], types, stateful=False
        )
        named = zip(shapes.items(), values, strict=True)
        return {name: tf.ensure_shape(x, [rows, width]) for (name, width), x in named}, number

    numbers = tf.data.Dataset.range(plan.start, max(plan.stop, plan.start))
    dataset = shard.split(numbers.map(compute, num_parallel_calls=2, deterministic=True))
    return map_and_prefetch(dataset, lambda arrays, number: finish(dict(arrays)))
