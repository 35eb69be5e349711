"""Windows as TFRecord shards: written once, read as a stream, never all in memory."""

import contextlib
import dataclasses
import hashlib
import json
import os
import uuid

import numpy as np
import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.data.batches import POOL, map_and_prefetch, pools
from adapter_bert_tf.data.host_shard import WHOLE
from adapter_bert_tf.data.questions import stale_files
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import parse_json

FORMAT = 3  # Of the records; another number makes them anew.
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

    def files(self) -> list[str]:
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
        if storage.isdir(done):
            raise InputError(
                f"{done} is a folder, and a file is written there. Move it away, or choose another "
                "features_dir.",
                "features_dir",
            )
        try:
            storage.makedirs(path)
        except tf.errors.OpError as error:
            raise InputError(
                f"The windows cannot be written to {folder}: {error}. Choose another features_dir.",
                "features_dir",
            ) from error
        # A name of its own: two runs may write at once, and the files of either are whole.
        name = uuid.uuid4().hex[:8]
        with stale_files.writing(path, name):
            found = _make(path, name, key, windows)
    stale_files.remove(path, os.path.basename(found.prefix))
    return found


def _make(path, name, key, windows):
    """Writes the records in a folder, under a name; returns the `Records`."""
    with storage.local_folder(path) as local:
        written = Records(os.path.join(local, name), 0).files()
        count = _write(written, windows())
        digests = [_digest(file) for file in written]
    # The last file: without it the others are not looked at.
    values = {"count": count, "name": name, "sha256": digests, "key": key}
    storage.write_text(os.path.join(path, DONE), json.dumps(values, indent=2))
    return Records(os.path.join(path, name), count)


def _whole(path, done):
    """The `Records` that are there whole, or None; what is there and is not is said."""
    if not storage.exists(done):
        return None
    if (found := _as_written(path, done)) is None:
        logging.warning("The windows in %s are damaged, and are made anew.", path)
    return found


def _as_written(path, done):
    """The `Records` that a file tells of, if the shards are what it says; else None."""
    try:
        values = parse_json(storage.read_bytes(done))
        found = Records(os.path.join(path, str(values["name"])), values["count"])
        whole = _digests(found) == list(values["sha256"]) and _held(found) == found.count
        return dataclasses.replace(found, count=int(found.count)) if whole else None
    except (ValueError, KeyError, TypeError, tf.errors.OpError):
        return None


def _digests(records):
    """Those of the shards; None if one is not there."""
    if not all(storage.exists(file) and not storage.isdir(file) for file in records.files()):
        return None
    return [_digest(file) for file in storage.cached(*records.files())]


def _held(records):
    """How many windows the shards hold, as an int."""
    return _read(records).reduce(0, lambda count, _: count + 1).numpy().item()


def _digest(path):
    """SHA-256 of a local file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _write(paths, windows):
    """Deals the windows out to the shards, all or none; returns how many there are."""
    count = 0
    try:
        with contextlib.ExitStack() as stack:
            writers = [stack.enter_context(tf.io.TFRecordWriter(path)) for path in paths]
            for count, window in enumerate(windows, start=1):
                writers[(count - 1) % SHARDS].write(_serialize(window))
    except BaseException:
        for path in filter(storage.exists, paths):
            storage.remove(path)
        raise
    return count


def _serialize(window):
    values = {name: np.ravel(getattr(window, name)).astype(np.int64) for name in FIELDS}
    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        for name, value in values.items()
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString(deterministic=True)  # Else the fields' order is by chance.


def train_batches(
    records,
    batch_size,
    steps,
    seed,
    max_seq_length,
    pad_to=8,
    group_by_length="epoch",
    start=0,
    share=WHOLE,
):
    """Shuffled batches of windows for `steps` steps, of similar length, all of `batch_size`.

    Args:
      records: `Records`.
      batch_size: windows a batch, over all replicas.
      steps: number of batches.
      seed: of the order; the same seed gives the same batches.
      max_seq_length: no batch is longer.
      pad_to: lengths are rounded up to a multiple of this; None pads all to `max_seq_length`.
      group_by_length: which batches are of similar lengths; see `batches.pools`.
      start: number of batches to leave out, where a run is taken up again.
      share: `Share` of this host.

    Returns:
      `tf.data.Dataset` of (inputs, labels), one element a local replica and step; labels are int32
      `[batch, 2]`.
    """
    dataset = _read(records).shuffle(SHUFFLED, seed=seed).repeat()
    if pad_to:
        sizes = pools(records.count, batch_size, steps, group_by_length)
        sizes = tf.constant([size * batch_size for size in sizes], tf.int64)
        dataset = dataset.batch(POOL * batch_size).rebatch(sizes).map(_lengths)
        dataset = tf.data.Dataset.zip((dataset, tf.data.Dataset.random(seed=seed)))
        dataset = dataset.flat_map(
            lambda pool, number: _sorted_batches(pool, number, batch_size, max_seq_length, pad_to)
        )
    else:
        dataset = dataset.batch(batch_size, drop_remainder=True).map(
            lambda batch: (batch, tf.constant(max_seq_length, tf.int64))
        )
    dataset = share.split(dataset.take(steps).skip(start))
    return map_and_prefetch(
        dataset, lambda batch, width: _inputs(batch, width, None if pad_to else max_seq_length)
    )


def eval_batches(records, batch_size, max_seq_length, pad_to=8, share=WHOLE):
    """Inputs of every window once, similar lengths together; see `eval_fields` for their order.

    The last batch is filled up with windows that were there before, so that all have one size.
    """
    dataset = _in_eval_order(records, batch_size, pad_to).map(
        lambda batch, lengths: (_filled(batch, batch_size), _width(lengths, max_seq_length, pad_to))
    )
    length = None if pad_to else max_seq_length
    return map_and_prefetch(
        share.split(dataset), lambda batch, width: _inputs(batch, width, length)[0]
    )


def eval_fields(records, batch_size, pad_to=8):
    """For each batch of `eval_batches`, a dict of the ragged fields of its windows, once each."""
    dataset = _in_eval_order(records, batch_size, pad_to)
    return map_and_prefetch(dataset, lambda batch, lengths: _parse(batch))


def _in_eval_order(records, batch_size, pad_to):
    """Pairs of a batch of serialized windows and their lengths; only the last may be smaller."""
    dataset = _read(records)
    if pad_to:
        pools = dataset.batch(POOL * batch_size).map(_lengths)
        return pools.flat_map(lambda pool, lengths: _by_length(pool, lengths).batch(batch_size))
    return dataset.batch(batch_size).map(_lengths)


def _read(records):
    """Serialized windows. Interleaved shards come in the order in which these were written."""
    files = storage.cached(*records.files())
    return tf.data.TFRecordDataset(files, num_parallel_reads=SHARDS)


def _by_length(pool, lengths):
    order = tf.argsort(lengths, stable=True)
    return tf.data.Dataset.from_tensor_slices((tf.gather(pool, order), tf.gather(lengths, order)))


def _filled(batch, batch_size):
    return tf.gather(batch, tf.range(batch_size) % tf.size(batch))


def _width(lengths, max_seq_length, pad_to):
    """Length of a batch, int64: its longest row's, rounded up, or the one fixed length."""
    if not pad_to:
        return tf.constant(max_seq_length, tf.int64)
    longest = tf.reduce_max(tf.cast(lengths, tf.int64), axis=-1)
    return tf.minimum(-(-longest // pad_to) * pad_to, max_seq_length)


def _parse(serialized):
    """Dict from field to int64 ragged `[batch, (values)]`."""
    features = {name: tf.io.RaggedFeature(tf.int64) for name in FIELDS}
    return tf.io.parse_example(serialized, features)


def _lengths(serialized):
    return serialized, _parse(serialized)["ids"].row_lengths()


def _sorted_batches(pool, number, batch_size, max_seq_length, pad_to):
    """A pool as pairs of a batch of similar length and that length, in random order."""
    serialized, lengths = pool
    order = tf.argsort(lengths, stable=True)
    batches = tf.reshape(tf.gather(serialized, order), [-1, batch_size])
    widths = _width(tf.reshape(tf.gather(lengths, order), [-1, batch_size]), max_seq_length, pad_to)
    seed = tf.stack([number, tf.zeros_like(number)])
    order = tf.random.experimental.stateless_shuffle(tf.range(tf.shape(batches)[0]), seed)
    return tf.data.Dataset.from_tensor_slices((tf.gather(batches, order), tf.gather(widths, order)))


def _inputs(serialized, width, length=None):
    """(inputs, labels) of serialized windows, padded to a width; `length`, if that is static."""
    windows = _parse(serialized)
    ids = windows["ids"]
    mask = tf.sequence_mask(tf.cast(ids.row_lengths(), tf.int64), width, tf.int32)
    is_question = tf.sequence_mask(windows["context_begin"].flat_values, width, tf.int32)
    word_ids = tf.cast(ids.to_tensor(shape=tf.stack([ids.nrows(tf.int64), width])), tf.int32)
    inputs = {
        "input_word_ids": word_ids,
        "input_mask": mask,
        "input_type_ids": mask * (1 - is_question),
    }
    rows = serialized.shape[0]
    inputs = {name: tf.ensure_shape(x, [rows, length]) for name, x in inputs.items()}
    labels = tf.cast(windows["labels"].to_tensor(shape=[None, 2]), tf.int32)
    return inputs, tf.ensure_shape(labels, [rows, 2])
