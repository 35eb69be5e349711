"""Tokenized examples in memory, and batches of examples of similar length."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from adapter_bert_tf.adapters.modules import FROZEN_OUTPUT
from adapter_bert_tf.data.frozen_outputs import FrozenOutputs
from adapter_bert_tf.data.host_shard import WHOLE

TOKENIZE_AT_ONCE = 1024
# Batches that are sorted by length together, at most. More pads less; fewer mixes better.
POOL = 64


@dataclasses.dataclass(frozen=True)
class Features:
    """Tokenized examples.

    Args:
      ids: int32 ragged `[examples, (pieces)]`.
      types: int32 ragged, 0 for the first text, 1 for the second.
      labels: int32 `[examples]` label ids, or float32 scores; zeros where there are none.
      lengths: int64 `[examples]`, in word pieces.
      cut: bool `[examples]`, whether the input was longer.
      task_ids: int32 `[examples]`, of the task of each, which its input then says; None: there is
        one task.
      frozen: `FrozenOutputs` of the examples, which their inputs then bring; None: they do not.
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
    """`Features` of `Examples`.

    Args:
      examples: `Examples`.
      encoder: `TextEncoder`.
      labels: `[examples]`, label ids or scores, or None.
    """
    columns = list(zip(*examples.texts(), strict=True))
    encode = _traced(encoder, len(columns))
    parts = [
        encode(*(tf.constant(column[start : start + TOKENIZE_AT_ONCE]) for column in columns))
        for start in range(0, len(examples), TOKENIZE_AT_ONCE)
    ]
    ids, types, full = (tf.concat(column, 0) for column in zip(*parts, strict=True))
    labels = np.zeros(len(examples), np.int32) if labels is None else labels
    lengths = ids.row_lengths().numpy()
    return Features(ids, types, tf.constant(labels), lengths, full.numpy() > lengths)


@functools.lru_cache(maxsize=4)
def _traced(encoder, columns):
    """`encoder` as a graph, which takes seconds to trace; also returns the uncut lengths."""

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
    share=WHOLE,
):
    """Shuffled batches for `steps` steps, all of `batch_size`.

    Args:
      features: `Features`.
      batch_size: examples a batch, over all replicas.
      steps: number of batches; the data is passed over as often as it takes.
      seed: of the order; the same seed gives the same batches.
      max_seq_length: no batch is longer.
      pad_to: lengths are rounded up to a multiple of this; None pads all to `max_seq_length`.
      group_by_length: which batches are of similar lengths; see `pools`.
      start: number of batches to leave out, where a run is taken up again.
      share: `Share` of this host.

    Returns:
      `tf.data.Dataset` of (inputs, labels), one element a local replica and step.
    """
    grouped = group_by_length if pad_to else None
    plan = plan_batches(features.lengths, batch_size, steps, seed, grouped)
    return planned_batches(features, plan[start:], max_seq_length, pad_to, share)


def eval_plan(features, batch_size, pad_to=8):
    """Every example once, shortest first.

    Returns:
      int64 `[batches, batch_size]`, indices of examples; -1 fills up the last batch.
    """
    order = np.argsort(features.lengths, kind="stable") if pad_to else np.arange(len(features))
    missing = -len(order) % batch_size
    return np.pad(order, (0, missing), constant_values=-1).reshape(-1, batch_size)


def eval_batches(features, plan, max_seq_length, pad_to=8, share=WHOLE):
    """Inputs of the batches of `eval_plan`; where it has -1, those of the first example."""
    dataset = planned_batches(features, np.maximum(plan, 0), max_seq_length, pad_to, share)
    return dataset.map(lambda inputs, labels: inputs)


def plan_batches(lengths, batch_size, steps, seed, group_by_length="epoch"):
    """Which examples go into which batch.

    Epochs follow each other without a gap, so that a batch may hold the end of one and the start of
    the next; a pool of batches at a time is sorted by length, and then they come in random order.

    Args:
      lengths: int `[examples]`.
      batch_size, steps, seed: as in `train_batches`.
      group_by_length: see `pools`; None sorts nothing.

    Returns:
      int64 `[steps, batch_size]`, indices of examples.
    """
    rng = np.random.default_rng(seed)
    needed = steps * batch_size
    epochs = [rng.permutation(len(lengths)) for _ in range(-(-needed // len(lengths)))]
    order = np.concatenate(epochs)[:needed] if epochs else np.zeros(0, np.int64)
    return group(order.reshape(steps, batch_size), lengths, rng, group_by_length)


def group(plan, lengths, rng, group_by_length):
    """The plan with examples of similar lengths in one batch, pool by pool.

    Args:
      plan: int `[steps, batch_size]`, indices of examples.
      lengths: int `[examples]`.
      rng: `np.random.Generator`, for the order of a pool's batches.
      group_by_length: see `pools`; None changes nothing.

    Returns:
      int64 `[steps, batch_size]`.
    """
    plan = plan.astype(np.int64)
    sizes = (
        pools(len(lengths), plan.shape[1], len(plan), group_by_length) if group_by_length else []
    )
    for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        pool = plan[start : start + size]
        rows = pool.reshape(-1)
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        plan[start : start + size] = rng.permutation(rows.reshape(pool.shape))
    return plan


def pools(examples, batch_size, steps, group_by_length):
    """How many batches at a time are sorted by length.

    Args:
      examples: number in an epoch.
      batch_size: examples a batch.
      steps: number of batches.
      group_by_length: `epoch`: at most `POOL` batches, and a quarter of one epoch. A batch with the
        end of one and the start of the next is a pool of its own: copies of an example have one
        length, and would come together. `run`: `POOL` batches wherever epochs end. `no`: one.

    Returns:
      list of numbers of batches, `steps` in all or more.
    """
    if group_by_length != "epoch":
        size = {"run": POOL, "no": 1}[group_by_length]
        return [size] * -(-steps // size)
    size = min(POOL, max(1, examples // (batch_size * 4)))
    ends, end = [0], 0
    while ends[-1] < steps:
        begin, end = -(-end // batch_size), end + examples
        ends += [*range(begin, end // batch_size, size), end // batch_size, -(-end // batch_size)]
    return np.diff(np.unique(ends)).tolist()


def planned_batches(features, plan, max_seq_length, pad_to=8, share=WHOLE):
    """Gathers and pads the batches of a plan, `[batches, batch_size]` indices of examples."""
    longest = features.lengths[plan].max(-1, initial=1)
    rounded = -(-longest // pad_to) * pad_to if pad_to else np.full_like(longest, max_seq_length)
    widths = np.minimum(rounded, max_seq_length)
    static_shape = [plan.shape[1] // share.replicas, None if pad_to else max_seq_length]

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
            found = features.frozen.gather(rows, width)
            inputs[FROZEN_OUTPUT] = tf.ensure_shape(found, [*static_shape, None])
        return inputs, tf.gather(features.labels, rows)

    dataset = share.split(tf.data.Dataset.from_tensor_slices((plan, widths)))
    return map_and_prefetch(dataset, batch)


def map_and_prefetch(dataset, function):
    """Maps in order, two at a time, and reads ahead."""
    dataset = dataset.map(function, num_parallel_calls=2, deterministic=True).prefetch(4)
    # All is set by hand, so the autotuner's thread has nothing to do but take time. The batches
    # are divided already, by `Share`.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)
