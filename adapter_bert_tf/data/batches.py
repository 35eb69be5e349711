"""Tokenized examples in memory, batched by similar length."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from adapter_bert_tf.adapters.modules import FROZEN_OUTPUT
from adapter_bert_tf.adapters.ops import compiled
from adapter_bert_tf.data.frozen_outputs import FrozenOutputs
from adapter_bert_tf.data.host_shard import WHOLE_BATCH
from adapter_bert_tf.data.padding import padded_lengths
from adapter_bert_tf.data.tokenization import pad_inputs

TOKENIZE_BATCH = 1024
UNTRACED = 20  # Batches.
# Largest number of batches sorted by length together. A larger pool pads less and mixes worse.
MAX_POOL = 64


@dataclasses.dataclass(frozen=True)
class Features:
    """Tokenized examples; `task_ids` and `frozen`, if there are any, become inputs too."""

    ids: tf.RaggedTensor  # int32 `[examples, (pieces)]`.
    types: tf.RaggedTensor  # int32, 0 for the first text, 1 for the second.
    labels: tf.Tensor  # int32 `[examples]` label ids, or float32 scores; zeros without labels.
    lengths: np.ndarray  # int64 `[examples]`, in word pieces.
    cut: np.ndarray  # bool `[examples]`, whether the input was longer.
    task_ids: np.ndarray | None = None  # int32 `[examples]`, the task of each.
    frozen: FrozenOutputs | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: list[int]) -> "Features":
        """Returns the features of the examples with these numbers, without those of `frozen`."""
        ids, types, labels = (tf.gather(x, rows) for x in (self.ids, self.types, self.labels))
        task_ids = None if self.task_ids is None else self.task_ids[rows]
        return Features(ids, types, labels, self.lengths[rows], self.cut[rows], task_ids)


def tokenize(examples, encoder, labels=None):
    """Tokenizes `Examples` to `Features`; `labels` are ids or scores `[examples]`, or None."""
    columns = list(zip(*examples.texts(), strict=True))
    batches = batch_encoder(encoder, len(columns))(
        [column[start : start + TOKENIZE_BATCH] for column in columns]
        for start in range(0, len(examples), TOKENIZE_BATCH)
    )
    ids, types, full = (tf.concat(column, 0) for column in zip(*batches, strict=True))
    labels = np.zeros(len(examples), np.int32) if labels is None else labels
    lengths = ids.row_lengths().numpy()
    return Features(ids, types, tf.constant(labels), lengths, full.numpy() > lengths)


class BatchEncoder:
    """Encodes batches of texts: word ids, type ids, and the uncut lengths.

    Tracing the encoder takes as long as `UNTRACED` batches without, so it begins with these.
    """

    def __init__(self, encoder, columns):
        self._encoder, self._count, self._traced = encoder, 0, {}
        self._specs = [tf.TensorSpec([None], tf.string)] * columns

    def __call__(self, batches):
        batches = list(batches)
        encode = self.function(len(batches))
        return [encode(*map(tf.constant, columns)) for columns in batches]

    def padded(self, columns):
        """Encodes a batch, without a tensor in between: its inputs, lengths, and uncut lengths.

        They are arrays: a dict of int32 `[texts, longest]`, int64 `[texts]` and int64 `[texts]`.
        """
        return tf.nest.map_structure(
            lambda tensor: tensor.numpy(), self._function(self._encode_padded, 1)(*columns)
        )

    def function(self, batches):
        """Returns the function of string tensors `[texts]` that encodes a number of batches."""
        return self._function(self._encode, batches)

    def _function(self, encode, batches):
        self._count += batches
        if encode not in self._traced and self._count > UNTRACED:
            self._traced[encode] = compiled(encode, input_signature=self._specs)
        return self._traced.get(encode, encode)

    def _encode_padded(self, *texts):
        ids, types, full = self._encode(*texts)
        return pad_inputs(ids, types), ids.row_lengths(), full

    def _encode(self, *texts):
        segments = self._encoder.segments(*texts)
        full = tf.add_n([segment.row_lengths() for segment in segments]) + len(segments) + 1
        return *self._encoder.join(segments), full


batch_encoder = functools.lru_cache(maxsize=4)(BatchEncoder)


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
    """Makes shuffled training batches of equal size, over as many epochs as `steps` needs.

    The same `seed` gives the same batches. A batch is padded to its longest example, rounded up as
    `pad_to` says (`padding.PadTo`). `group_by_length` is the scope of sorting by length, see
    `pool_sizes`; `start` batches are skipped, for a resumed run.

    Returns:
      `tf.data.Dataset` of (inputs, labels), one element for each local replica and step.
    """
    grouped = group_by_length if pad_to else None
    plan = plan_batches(features.lengths, batch_size, steps, seed, grouped)
    return gather_batches(features, plan[start:], max_seq_length, pad_to, shard)


def eval_plan(features, batch_size, pad_to=8):
    """Plans batches with every example once, shortest first: int64 `[batches, batch_size]`.

    The values are indices of examples; -1 pads the last batch.
    """
    order = np.argsort(features.lengths, kind="stable") if pad_to else np.arange(len(features))
    missing = -len(order) % batch_size
    return np.pad(order, (0, missing), constant_values=-1).reshape(-1, batch_size)


def eval_batches(features, plan, max_seq_length, pad_to=8, shard=WHOLE_BATCH):
    """Gathers the inputs of an `eval_plan`; padding rows repeat the first example."""
    dataset = gather_batches(features, np.maximum(plan, 0), max_seq_length, pad_to, shard)
    return dataset.map(lambda inputs, labels: inputs)


def plan_batches(lengths, batch_size, steps, seed, group_by_length="epoch"):
    """Plans the examples of each training batch: int64 `[steps, batch_size]`, indices of examples.

    A batch may hold the end of one epoch and the start of the next. Each pool of batches is sorted
    by length (`pool_sizes`; None does not sort), and its batches come in random order.
    """
    rng = np.random.default_rng(seed)
    needed = steps * batch_size
    epochs = [rng.permutation(len(lengths)) for _ in range(-(-needed // len(lengths)))]
    order = np.concatenate(epochs)[:needed] if epochs else np.zeros(0, np.int64)
    return sort_pools(order.reshape(steps, batch_size), lengths, rng, group_by_length)


def sort_pools(plan, lengths, rng, group_by_length):
    """Sorts each pool of a plan `[steps, batch_size]` by length, so that padding is short.

    `rng` draws the order of a pool's batches. `group_by_length`: see `pool_sizes`; None: no sort.
    """
    plan = plan.astype(np.int64)
    if not group_by_length:
        return plan
    sizes = pool_sizes(len(lengths), plan.shape[1], len(plan), group_by_length)
    for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        pool = plan[start : start + size]
        rows = pool.reshape(-1)
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        plan[start : start + size] = rng.permutation(rows.reshape(pool.shape))
    return plan


def pool_sizes(examples, batch_size, steps, group_by_length):
    """Returns the numbers of batches that are sorted by length together; their sum is >= `steps`.

    With `group_by_length` `epoch` a pool has at most `MAX_POOL` batches and a quarter of an epoch
    of `examples`. A batch across two epochs is a pool of its own, because sorting would put two
    copies of an example, which have the same length, next to each other. With `run` pools have
    `MAX_POOL` batches, also across epochs; with `no`, one.
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
    widths = padded_lengths(longest, pad_to, max_seq_length)
    static_shape = [plan.shape[1] // shard.replicas, None if pad_to else max_seq_length]

    def batch(rows, width):
        ids, types = tf.gather(features.ids, rows), tf.gather(features.types, rows)
        inputs = pad_inputs(ids, types, width)
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
