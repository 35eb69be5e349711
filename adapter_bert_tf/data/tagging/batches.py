"""Batches of windows with a label and a weight for each word piece."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data import batches
from adapter_bert_tf.data.batches import Features, eval_plan
from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard
from adapter_bert_tf.data.padding import PadTo
from adapter_bert_tf.data.tagging.windows import Windows

__all__ = ["eval_batches", "eval_plan", "features_of", "train_batches"]


def features_of(windows: Windows, labels: Sequence[Sequence[int]] | None = None) -> Features:
    """Returns windows as the examples of `data.batches`; `cut` is whether a window is not alone.

    Args:
      windows: `Windows`.
      labels: label ids of the words of each sentence; None: not known.

    Returns:
      `Features` whose labels are int32 ragged `[windows, (words), 2]`: position of the first piece
      of each word that the window answers, and its label id.
    """
    firsts = windows.firsts
    ids = tf.zeros_like(firsts.flat_values) if labels is None else _word_labels(windows, labels)
    pairs = firsts.with_flat_values(tf.stack([firsts.flat_values, ids], -1))
    shares = np.bincount(windows.sentence)[windows.sentence]
    types = windows.ids.with_flat_values(tf.zeros_like(windows.ids.flat_values))
    return Features(windows.ids, types, pairs, windows.lengths, shares > 1)


def _word_labels(windows: Windows, labels: Sequence[Sequence[int]]) -> tf.Tensor:
    """Returns the label id of each answered word, int32 `[answered words]`."""
    flat = np.fromiter((label for sentence in labels for label in sentence), np.int32)
    begins = np.cumsum([0, *map(len, labels)])
    sentence = windows.sentence[windows.words.value_rowids().numpy()]
    return tf.constant(flat[begins[sentence] + windows.words.flat_values.numpy()])


def train_batches(
    features: Features,
    batch_size: int,
    steps: int,
    seed: int,
    max_seq_length: int,
    pad_to: PadTo = 8,
    group_by_length: str = "epoch",
    start: int = 0,
    shard: HostShard = WHOLE_BATCH,
) -> tf.data.Dataset:
    """Makes shuffled batches of windows, as `data.batches.train_batches`.

    Labels are float32 `[batch, seq, 2]`: label id and weight. The weight of a word's first piece is
    the batch size divided by the number of words that the whole batch answers, over all replicas
    and hosts; other pieces have 0. So the mean over rows of the weighted sums of a row is the mean
    over words, also where a batch is computed in parts.
    """
    grouped = group_by_length if pad_to else None
    plan = batches.plan_batches(features.lengths, batch_size, steps, seed, grouped)[start:]
    return weighted_batches(features, plan, max_seq_length, pad_to, shard)


def weighted_batches(
    features: Features,
    plan: np.ndarray,
    max_seq_length: int,
    pad_to: PadTo = 8,
    shard: HostShard = WHOLE_BATCH,
) -> tf.data.Dataset:
    """Gathers the batches of a plan, `[batches, batch_size]` numbers of windows, with labels."""
    words = features.labels.row_lengths().numpy()[plan].sum(-1)
    weights = (plan.shape[-1] / np.maximum(words, 1)).astype(np.float32)
    local = shard.local if shard.replicas > 1 else 1
    gathered = batches.gather_batches(features, plan, max_seq_length, pad_to, shard)
    weighted = tf.data.Dataset.from_tensor_slices(np.repeat(weights, local))
    return batches.map_and_prefetch(tf.data.Dataset.zip((gathered, weighted)), _dense_labels)


def _dense_labels(
    batch: tuple[dict[str, tf.Tensor], tf.RaggedTensor], weight: tf.Tensor
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    inputs, pairs = batch
    ids = inputs["input_word_ids"]
    flat = pairs.flat_values
    places = tf.stack([tf.cast(pairs.value_rowids(), tf.int32), flat[:, 0]], -1)
    label = tf.cast(flat[:, 1], tf.float32)
    values = tf.stack([label, tf.fill(tf.shape(label), weight)], -1)
    dense = tf.scatter_nd(places, values, tf.concat([tf.shape(ids), [2]], 0))
    return inputs, tf.ensure_shape(dense, [*ids.shape, 2])


def eval_batches(
    features: Features,
    plan: np.ndarray,
    max_seq_length: int,
    pad_to: PadTo = 8,
    shard: HostShard = WHOLE_BATCH,
) -> tf.data.Dataset:
    """Gathers the inputs of an `eval_plan`; padding rows repeat the first window."""
    return batches.eval_batches(features, plan, max_seq_length, pad_to, shard)
