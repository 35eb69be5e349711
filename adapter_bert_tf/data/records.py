"""Windows as TFRecord shards: written once, read as a stream, never all in memory."""

import contextlib
import dataclasses
import hashlib
import json
import os
import uuid

import numpy as np
import tensorflow as tf

from adapter_bert_tf.data.batches import POOL, map_and_prefetch
from adapter_bert_tf.errors import InputError

FORMAT = 2  # Of the records; another number makes them anew.
SHARDS = 8
SHUFFLED = 4096  # Windows that are mixed at a time.
DONE = "done.json"
FIELDS = ("question", "ids", "context_begin", "labels", "starts", "ends", "is_best")


@dataclasses.dataclass(frozen=True)
class Records:
    """Windows on disk.

    Args:
      prefix: of the shards' paths.
      count: number of windows.
    """

    prefix: str
    count: int

    def files(self):
        """Paths of the shards, in order."""
        return [f"{self.prefix}-{i:02d}.tfrecord" for i in range(SHARDS)]


def cached_records(folder, key, windows):
    """The records for `key` under `folder`, written now if they are not there whole.

    Args:
      folder: of all caches, local or gs://.
      key: dict of all that decides the records' content.
      windows: function that returns the `Window`s to write.

    Returns:
      `Records`.
    """
    text = json.dumps(key | {"format": FORMAT}, sort_keys=True)
    path = os.path.join(folder, hashlib.sha256(text.encode()).hexdigest()[:16])
    done = os.path.join(path, DONE)
    if (found := _whole(path, done)) is None:
        try:
            tf.io.gfile.makedirs(path)
        except tf.errors.OpError as error:
            raise InputError(f"The windows cannot be written to {folder}: {error}. Choose another "
                             "--features_dir.") from error
        # A name of its own: two runs may write at once, and the files of either are whole.
        name = uuid.uuid4().hex[:8]
        prefix = os.path.join(path, name)
        count = _write(Records(prefix, 0).files(), windows())
        # The last file: without it the others are not looked at.
        with tf.io.gfile.GFile(f"{done}.{name}", "w") as file:
            json.dump({"count": count, "name": name, "key": key}, file, indent=2)
        tf.io.gfile.rename(f"{done}.{name}", done, overwrite=True)
        found = Records(prefix, count)
    return found


def _whole(path, done):
    """The `Records` that are there whole, or None."""
    if not tf.io.gfile.exists(done):
        return None
    try:
        with tf.io.gfile.GFile(done) as file:
            values = json.load(file)
    except json.JSONDecodeError:
        return None
    found = Records(os.path.join(path, values["name"]), values["count"])
    return found if all(map(tf.io.gfile.exists, found.files())) else None


def _write(paths, windows):
    """Deals the windows out to the shards, all or none; returns how many there are."""
    count = 0
    try:
        with contextlib.ExitStack() as stack:
            writers = [stack.enter_context(tf.io.TFRecordWriter(path)) for path in paths]
            for count, window in enumerate(windows, start=1):
                writers[(count - 1) % SHARDS].write(_serialize(window))
    except BaseException:
        for path in filter(tf.io.gfile.exists, paths):
            tf.io.gfile.remove(path)
        raise
    return count


def _serialize(window):
    values = {name: np.ravel(getattr(window, name)).astype(np.int64) for name in FIELDS}
    features = {name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
                for name, value in values.items()}
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def train_batches(records, batch_size, steps, seed, max_seq_length, pad_to=8):
    """Shuffled batches of windows for `steps` steps, of similar length, all of `batch_size`.

    Args:
      records: `Records`.
      batch_size: windows a batch.
      steps: number of batches.
      seed: of the order; the same seed gives the same batches.
      max_seq_length: no batch is longer.
      pad_to: lengths are rounded up to a multiple of this; None pads all to `max_seq_length`.

    Returns:
      `tf.data.Dataset` of (inputs, labels); labels are int32 `[batch, 2]`.
    """
    # Interleaved shards come in the order in which the windows were written.
    dataset = tf.data.TFRecordDataset(records.files(), num_parallel_reads=SHARDS)
    dataset = dataset.shuffle(SHUFFLED, seed=seed).repeat()
    if pad_to:
        dataset = dataset.batch(POOL * batch_size).map(_lengths)
        dataset = tf.data.Dataset.zip((dataset, tf.data.Dataset.random(seed=seed)))
        dataset = dataset.flat_map(lambda pool, number: _sorted_batches(*pool, number, batch_size))
    else:
        dataset = dataset.batch(batch_size)
    return map_and_prefetch(
        dataset.take(steps), lambda batch: _inputs(_parse(batch), max_seq_length, pad_to))


def eval_batches(records, batch_size, max_seq_length, pad_to=8):
    """Every window once, similar lengths together; the last batch of a pool may be smaller.

    Returns:
      `tf.data.Dataset` of (inputs, window): window is a dict of the ragged fields of `Window`.
    """
    dataset = tf.data.TFRecordDataset(records.files(), num_parallel_reads=SHARDS)
    if pad_to:
        dataset = dataset.batch(POOL * batch_size).map(_lengths).flat_map(
            lambda pool, lengths: tf.data.Dataset.from_tensor_slices(
                tf.gather(pool, tf.argsort(lengths, stable=True))).batch(batch_size))
    else:
        dataset = dataset.batch(batch_size)

    def split(batch):
        windows = _parse(batch)
        return _inputs(windows, max_seq_length, pad_to)[0], windows

    return map_and_prefetch(dataset, split)


def _parse(serialized):
    """Dict from field to int64 ragged `[batch, (values)]`."""
    features = {name: tf.io.RaggedFeature(tf.int64) for name in FIELDS}
    return tf.io.parse_example(serialized, features)


def _lengths(serialized):
    return serialized, _parse(serialized)["ids"].row_lengths()


def _sorted_batches(serialized, lengths, number, batch_size):
    """A pool as batches of similar length, in random order."""
    order = tf.argsort(lengths, stable=True)
    batches = tf.reshape(tf.gather(serialized, order), [-1, batch_size])
    seed = tf.stack([number, tf.zeros_like(number)])
    return tf.data.Dataset.from_tensor_slices(
        tf.random.experimental.stateless_shuffle(batches, seed))


def _inputs(windows, max_seq_length, pad_to):
    """(inputs, labels) of parsed windows, padded."""
    ids = windows["ids"]
    lengths = tf.cast(ids.row_lengths(), tf.int64)
    width = tf.constant(max_seq_length, tf.int64)
    if pad_to:
        width = tf.minimum(-(-tf.reduce_max(lengths) // pad_to) * pad_to, width)
    mask = tf.sequence_mask(lengths, width, tf.int32)
    is_question = tf.sequence_mask(windows["context_begin"].flat_values, width, tf.int32)
    word_ids = tf.cast(ids.to_tensor(shape=tf.stack([ids.nrows(tf.int64), width])), tf.int32)
    inputs = {"input_word_ids": word_ids, "input_mask": mask,
              "input_type_ids": mask * (1 - is_question)}
    shape = [None, None if pad_to else max_seq_length]
    inputs = {name: tf.ensure_shape(x, shape) for name, x in inputs.items()}
    return inputs, tf.cast(windows["labels"].to_tensor(shape=[None, 2]), tf.int32)
