"""Tokenized examples in memory, batched by similar length."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from adapter_bert_tf.adapters.modules import FROZEN_OUTPUT
from adapter_bert_tf.data.frozen_outputs import FrozenOutputs
from adapter_bert_tf.data.host_shard import WHOLE_BATCH

TOKENIZE_BATCH = 1024
# Largest number of batches sorted by length together. A larger pool pads less and mixes worse.
MAX_POOL = 64


@dataclasses.dataclass(frozen=True)
class Features:
    """Tokenized examples.

    Args:
      ids: int32 ragged `[examples, (pieces)]`.
      types: int32 ragged, 0 for the first text, 1 for the second.
      labels: int32 `[examples]` label ids, or float32 scores; zeros without labels.
      lengths: int64 `[examples]`, in word pieces.
      cut: bool `[examples]`, whether the input was longer.
      task_ids: int32 `[examples]`, the task of each, added to the inputs; None with one task.
      frozen: `FrozenOutputs` of the examples, added to the inputs; None to add none.
    """

    ids: tf.RaggedTensor
    types: tf.RaggedTensor
    labels: tf.Tensor
    lengths: np.ndarray
    cut: np.ndarray
    task_ids: np.ndarray | None = None
    frozen: FrozenOutputs | None = None

    def __len__(self) -> int:
        return len(self.lengths)


def tokenize(examples, encoder, labels=None):
    """Tokenizes `Examples` to `Features`.

    Args:
      examples: `Examples`.
      encoder: `TextEncoder`.
      labels: `[examples]`, label ids or scores, or None.
    """
    columns = list(zip(*examples.texts(), strict=True))
    encode = _compile_encoder(encoder, len(columns))
    batches = [
        encode(*(tf.constant(column[start : start + TOKENIZE_BATCH]) for column in columns))
        for start in range(0, len(examples), TOKENIZE_BATCH)
    ]
    ids, types, full = (tf.concat(column, 0) for column in zip(*batches, strict=True))
    labels = np.zeros(len(examples), np.int32) if labels is None else labels
    lengths = ids.row_lengths().numpy()
    return Features(ids, types, tf.constant(labels), lengths, full.numpy() > lengths)


@functools.lru_cache(maxsize=4)
def _compile_encoder(encoder, columns):
    """Traces `encoder`, which takes seconds; the function also returns the uncut lengths."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * columns, autograph=False)
    def encode(*texts):
        segments = encoder.segments(*texts)
        full = tf.add_n([segment.row_lengths() for segment in segments]) + len(segments) + 1
        return *encoder.join(segments), full

    return encode


def train_batches(
    features,
    batch_size,
    steps,
    seed,
    max_seq_length,
    pad_to=8,
    group_by_length="epoch",
    start=0,
    shard=WHOLE_BATCH,
):
    """Makes shuffled training batches of equal size.

    Args:
      features: `Features`.
      batch_size: examples per batch, over all replicas.
      steps: number of batches, over as many epochs as needed.
      seed: seed of the order; the same seed gives the same batches.
      max_seq_length: maximum length of a batch.
      pad_to: lengths are rounded up to a multiple of this; None pads all to `max_seq_length`.
      group_by_length: scope of sorting by length; see `pool_sizes`.
      start: number of batches to skip, for a resumed run.
      shard: `HostShard` of this host.

    Returns:
      `tf.data.Dataset` of (inputs, labels), one element for each local replica and step.
    """
    grouped = group_by_length if pad_to else None
    plan = plan_batches(features.lengths, batch_size, steps, seed, grouped)
    return gather_batches(features, plan[start:], max_seq_length, pad_to, shard)


def eval_plan(features, batch_size, pad_to=8):
    """Plans batches with every example once, shortest first.

    Returns:
      int64 `[batches, batch_size]`, indices of examples; -1 pads the last batch.
    """
    order = np.argsort(features.lengths, kind="stable") if pad_to else np.arange(len(features))
    missing = -len(order) % batch_size
    return np.pad(order, (0, missing), constant_values=-1).reshape(-1, batch_size)


def eval_batches(features, plan, max_seq_length, pad_to=8, shard=WHOLE_BATCH):
    """Gathers the inputs of an `eval_plan`; padding rows repeat the first example."""
    dataset = gather_batches(features, np.maximum(plan, 0), max_seq_length, pad_to, shard)
    return dataset.map(lambda inputs, labels: inputs)


def plan_batches(lengths, batch_size, steps, seed, group_by_length="epoch"):
    """Plans the examples of each training batch.

    A batch may hold the end of one epoch and the start of the next. Each pool of batches is sorted
    by length, and the batches of a pool come in random order.

    Args:
      lengths: int `[examples]`.
      batch_size, steps, seed: as in `train_batches`.
      group_by_length: see `pool_sizes`; None does not sort.

    Returns:
      int64 `[steps, batch_size]`, indices of examples.
    """
    rng = np.random.default_rng(seed)
    needed = steps * batch_size
    epochs = [rng.permutation(len(lengths)) for _ in range(-(-needed // len(lengths)))]
    order = np.concatenate(epochs)[:needed] if epochs else np.zeros(0, np.int64)
    return sort_pools(order.reshape(steps, batch_size), lengths, rng, group_by_length)


def sort_pools(plan, lengths, rng, group_by_length):
    """Sorts each pool of a plan by length, so that a batch has examples of similar lengths.

    Args:
      plan: int `[steps, batch_size]`, indices of examples.
      lengths: int `[examples]`.
      rng: `np.random.Generator`, for the order of a pool's batches.
      group_by_length: see `pool_sizes`; None does not sort.

    Returns:
      int64 `[steps, batch_size]`.
    """
    plan = plan.astype(np.int64)
    sizes = (
        pool_sizes(len(lengths), plan.shape[1], len(plan), group_by_length)
        if group_by_length
        else []
    )
    for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        pool = plan[start : start + size]
        rows = pool.reshape(-1)
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        plan[start : start + size] = rng.permutation(rows.reshape(pool.shape))
    return plan


def pool_sizes(examples, batch_size, steps, group_by_length):
    """Returns the numbers of batches that are sorted by length together.

    Args:
      examples: number of examples in an epoch.
      batch_size: examples per batch.
      steps: number of batches.
      group_by_length: `epoch`: at most `MAX_POOL` batches and a quarter of an epoch. A batch across
        two epochs is a pool of its own, because sorting would put two copies of an example, which
        have the same length, next to each other. `run`: `MAX_POOL` batches, also across epochs.
        `no`: one batch.

    Returns:
      list of numbers of batches; their sum is at least `steps`.
    """
    if group_by_length != "epoch":
        size = {"run": MAX_POOL, "no": 1}[group_by_length]
        return [size] * -(-steps // size)
    size = min(MAX_POOL, max(1, examples // (batch_size * 4)))
    ends, end = [0], 0
    while ends[-1] < steps:
        begin, end = -(-end // batch_size), end + examples
        ends += [*range(begin, end // batch_size, size), end // batch_size, -(-end // batch_size)]
    return np.diff(np.unique(ends)).tolist()


def gather_batches(features, plan, max_seq_length, pad_to=8, shard=WHOLE_BATCH):
    """Gathers and pads the batches of a plan, `[batches, batch_size]` indices of examples."""
    longest = features.lengths[plan].max(-1, initial=1)
    rounded = -(-longest // pad_to) * pad_to if pad_to else np.full_like(longest, max_seq_length)
    widths = np.minimum(rounded, max_seq_length)
    static_shape = [plan.shape[1] // shard.replicas, None if pad_to else max_seq_length]

    def batch(rows, width):
        ids, types = tf.gather(features.ids, rows), tf.gather(features.types, rows)
        shape = tf.stack([tf.size(rows, tf.int64), width])
        inputs = {
            "input_word_ids": ids.to_tensor(shape=shape),
            "input_mask": tf.sequence_mask(ids.row_lengths(), width, tf.int32),
            "input_type_ids": types.to_tensor(shape=shape),
        }
        inputs = {name: tf.ensure_shape(x, static_shape) for name, x in inputs.items()}
        if features.task_ids is not None:
            task_ids = tf.gather(features.task_ids, rows)
            inputs["task_ids"] = tf.ensure_shape(task_ids, static_shape[:1])
        if features.frozen is not None:
            outputs = features.frozen.gather(rows, width)
            inputs[FROZEN_OUTPUT] = tf.ensure_shape(outputs, [*static_shape, None])
        return inputs, tf.gather(features.labels, rows)

    dataset = shard.split(tf.data.Dataset.from_tensor_slices((plan, widths)))
    return map_and_prefetch(dataset, batch)


def map_and_prefetch(dataset, function):
    """Maps in order, two elements in parallel, and prefetches."""
    dataset = dataset.map(function, num_parallel_calls=2, deterministic=True).prefetch(4)
    # All values are fixed, so the autotuner's thread would only cost time. `HostShard` has already
    # divided the batches.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)
