"""Windows in TFRecord shards, written once and streamed."""

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import uuid

import numpy as np
import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.data.batches import MAX_POOL, map_and_prefetch, pool_sizes
from adapter_bert_tf.data.host_shard import WHOLE_BATCH
from adapter_bert_tf.data.padding import allowed_lengths
from adapter_bert_tf.errors import InputError, Occupied, Unavailable
from adapter_bert_tf.output.output_dir import Contents, OutputDir
from adapter_bert_tf.sanitize import parse_json

FORMAT = 4  # Version of the records; records of another version are written again.
SHARDS = 8
SHUFFLE_BUFFER = 4096  # Windows.
DONE_FILE = "done.json"
SHARD = re.compile(r"[0-9a-f]{8}-\d\d\.tfrecord")
# The signs of earlier versions showed which of them were being written.
CONTENTS = Contents(files=(DONE_FILE, SHARD), incomplete=re.compile(r"[0-9a-f]{8}\.writing"))
FIELDS = ("question", "ids", "context_begin", "labels", "starts", "ends", "is_best")


@dataclasses.dataclass(frozen=True)
class Records:
    """Windows on disk."""

    prefix: str  # Common prefix of the shards' paths.
    count: int

    def files(self) -> list[str]:
        """Returns the paths of the shards, in order."""
        return [f"{self.prefix}-{i:02d}.tfrecord" for i in range(SHARDS)]


def cached_records(folder, key, windows):
    """Returns the `Records` for `key`, all values that determine them, in the folder of caches.

    Writes the `Window`s that `windows` returns if the records are missing or incomplete.
    """
    text = json.dumps(key | {"format": FORMAT}, sort_keys=True)
    path = os.path.join(folder, hashlib.sha256(text.encode()).hexdigest()[:16])
    done_file = os.path.join(path, DONE_FILE)
    if (records := _read_records(path, done_file)) is None:
        if storage.isdir(done_file):
            raise Occupied(
                f"{done_file} is a folder. Move it away, or choose another features_dir.",
                "features_dir",
            )
        if storage.exists(done_file):
            logging.warning(f"The windows in {path} are damaged and will be written again.")
        try:
            storage.makedirs(path)
        except OSError as error:
            raise Unavailable(
                f"The windows cannot be written to {folder}: {error}. Choose another features_dir.",
                "features_dir",
            ) from error
        with OutputDir(path, CONTENTS).lock(wait=True):
            # Another run may have written them in the meantime.
            records = _read_records(path, done_file) or _write_records(path, key, windows)
    _remove_stale(path, records)
    return records


def _remove_stale(path, records):
    """Removes what killed processes left, and shards that were damaged."""
    current = {DONE_FILE, *map(os.path.basename, records.files())}
    if {*storage.listdir(path)} <= current:
        return
    # If another run holds the folder, or this user may only read it, they stay.
    with contextlib.suppress(InputError), OutputDir(path, CONTENTS).lock():
        for name in {*storage.listdir(path)} - current:
            if SHARD.fullmatch(name):
                storage.remove(os.path.join(path, name))


def _write_records(path, key, windows):
    """Writes records to a folder, with a unique prefix; returns the `Records`."""
    name = uuid.uuid4().hex[:8]
    with storage.local_folder(path) as local:
        files = Records(os.path.join(local, name), 0).files()
        count = _write_shards(files, windows())
        digests = [_digest(file) for file in files]
    # Written last: without it the shards are ignored.
    values = {"count": count, "name": name, "sha256": digests, "key": key}
    storage.write_text(os.path.join(path, DONE_FILE), json.dumps(values, indent=2))
    return Records(os.path.join(path, name), count)


def _read_records(path, done_file):
    """Reads complete records; returns None for missing or damaged ones."""
    if not storage.exists(done_file):
        return None
    with contextlib.suppress(ValueError, KeyError, TypeError, OSError, tf.errors.OpError):
        values = parse_json(storage.read_bytes(done_file))
        records = Records(os.path.join(path, str(values["name"])), values["count"])
        if all(storage.exists(file) and not storage.isdir(file) for file in records.files()):
            digests = [_digest(file) for file in storage.cached(*records.files())]
            count = _read_dataset(records).reduce(0, lambda count, _: count + 1).numpy().item()
            if digests == list(values["sha256"]) and count == records.count:
                return dataclasses.replace(records, count=count)
    return None


def _digest(path):
    """Returns the SHA-256 of a local file, which may be larger than memory."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _write_shards(paths, windows):
    """Writes windows to the shards in turn; on an error removes them. Returns the count."""
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
    features = {}
    for name in FIELDS:
        values = tf.train.Int64List(value=np.ravel(getattr(window, name)).astype(np.int64))
        features[name] = tf.train.Feature(int64_list=values)
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString(deterministic=True)  # Otherwise the order of fields varies.


def train_batches(
    records,
    batch_size,
    steps,
    seed,
    max_seq_length,
    pad_to=8,
    group_by_length="epoch",
    start=0,
    shard=WHOLE_BATCH,
):
    """Makes shuffled training batches as `batches.train_batches`; labels are int32 `[batch, 2]`."""
    dataset = _read_dataset(records).shuffle(SHUFFLE_BUFFER, seed=seed).repeat()
    if pad_to:
        sizes = pool_sizes(records.count, batch_size, steps, group_by_length)
        sizes = tf.constant([size * batch_size for size in sizes], tf.int64)
        dataset = dataset.batch(MAX_POOL * batch_size).rebatch(sizes).map(_add_lengths)
        dataset = tf.data.Dataset.zip((dataset, tf.data.Dataset.random(seed=seed)))
        dataset = dataset.flat_map(
            lambda pool, number: _sorted_batches(pool, number, batch_size, max_seq_length, pad_to)
        )
    else:
        dataset = dataset.batch(batch_size, drop_remainder=True).map(
            lambda batch: (batch, tf.constant(max_seq_length, tf.int64))
        )
    dataset = shard.split(dataset.take(steps).skip(start))
    return map_and_prefetch(
        dataset, lambda batch, width: _inputs(batch, width, None if pad_to else max_seq_length)
    )


def eval_batches(records, batch_size, max_seq_length, pad_to=8, shard=WHOLE_BATCH):
    """Makes batches with every window once, sorted by length; repeats fill the last one."""

    def fill(batch, lengths):
        full_batch = tf.gather(batch, tf.range(batch_size) % tf.size(batch))
        return full_batch, _width(lengths, max_seq_length, pad_to)

    dataset = shard.split(_eval_order(records, batch_size, pad_to).map(fill))
    length = None if pad_to else max_seq_length
    return map_and_prefetch(dataset, lambda batch, width: _inputs(batch, width, length)[0])


def eval_fields(records, batch_size, pad_to=8):
    """Makes a dict of ragged fields for each batch of `eval_batches`, without repeated windows."""
    dataset = _eval_order(records, batch_size, pad_to)
    return map_and_prefetch(dataset, lambda batch, lengths: _parse(batch))


def _eval_order(records, batch_size, pad_to):
    """Makes pairs of a batch of serialized windows and their lengths; the last may be smaller."""
    dataset = _read_dataset(records)
    if pad_to:
        pools = dataset.batch(MAX_POOL * batch_size).map(_add_lengths)
        return pools.flat_map(
            lambda pool, lengths: _sort_by_length(pool, lengths).batch(batch_size)
        )
    return dataset.batch(batch_size).map(_add_lengths)


def _read_dataset(records):
    """Reads serialized windows; interleaving the shards restores the order of writing."""
    files = storage.cached(*records.files())
    return tf.data.TFRecordDataset(files, num_parallel_reads=SHARDS)


def _sort_by_length(pool, lengths):
    order = tf.argsort(lengths, stable=True)
    return tf.data.Dataset.from_tensor_slices((tf.gather(pool, order), tf.gather(lengths, order)))


def _width(lengths, max_seq_length, pad_to):
    """Returns the padded length of a batch, int64."""
    allowed = tf.constant(allowed_lengths(pad_to, max_seq_length))
    longest = tf.reduce_max(tf.cast(lengths, tf.int64), axis=-1, keepdims=True)
    return tf.reduce_min(tf.where(allowed >= longest, allowed, max_seq_length), axis=-1)


def _parse(serialized):
    """Parses windows to a dict from field to int64 ragged `[batch, (values)]`."""
    features = {name: tf.io.RaggedFeature(tf.int64) for name in FIELDS}
    return tf.io.parse_example(serialized, features)


def _add_lengths(serialized):
    return serialized, _parse(serialized)["ids"].row_lengths()


def _sorted_batches(pool, number, batch_size, max_seq_length, pad_to):
    """Splits a pool into (batch, length) pairs of similar lengths, in random order."""
    serialized, lengths = pool
    order = tf.argsort(lengths, stable=True)
    batches = tf.reshape(tf.gather(serialized, order), [-1, batch_size])
    widths = _width(tf.reshape(tf.gather(lengths, order), [-1, batch_size]), max_seq_length, pad_to)
    seed = tf.stack([number, tf.zeros_like(number)])
    order = tf.random.experimental.stateless_shuffle(tf.range(tf.shape(batches)[0]), seed)
    return tf.data.Dataset.from_tensor_slices((tf.gather(batches, order), tf.gather(widths, order)))


def _inputs(serialized, width, length=None):
    """Parses (inputs, labels), padded to `width`; `length` is the width if it is static."""
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
