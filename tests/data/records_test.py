"""Windows on disk: whole or not there, read as a stream in batches of similar length."""

import dataclasses
import json
import pathlib
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.data.questions import records
from adapter_bert_tf.data.questions.spans import Window
from tests.output.lock_test import hold
from tests.refusals import raises_code

KEY = {"data": "x", "max_seq_length": 24}


def _window(i):
    pieces = 1 + i % 19
    ids = np.concatenate([[2, 7, 3], np.full(pieces, 5 + i % 3), [3]]).astype(np.int32)
    starts = np.arange(pieces, dtype=np.int32) * 2
    return Window(i, ids, 3, starts, starts + 1, np.ones(pieces, bool), (3, 3))


@pytest.fixture
def written(tmp_path):
    return records.cached_records(str(tmp_path), KEY, lambda: map(_window, range(300)))


def test_written_once_and_only_whole(tmp_path):
    def broken():
        yield from map(_window, range(5))
        raise OSError("disk full")

    with pytest.raises(OSError):
        records.cached_records(str(tmp_path), KEY, broken)
    assert not list(tmp_path.rglob("*.*"))
    first = records.cached_records(str(tmp_path), KEY, lambda: map(_window, range(9)))
    again = records.cached_records(str(tmp_path), KEY, broken)
    assert first == again and first.count == 9
    other = records.cached_records(str(tmp_path), KEY | {"data": "y"}, lambda: [_window(0)])
    assert other.count == 1 and len(list(tmp_path.iterdir())) == 2
    assert KEY in [json.loads(path.read_text())["key"] for path in tmp_path.glob("*/done.json")]


def _shard(folder):
    return next(folder.glob("*-03.tfrecord"))


def _changed(folder, **values):
    done = folder / "done.json"
    done.write_text(json.dumps(json.loads(done.read_text()) | values))


def _flipped(folder):
    content = bytearray(_shard(folder).read_bytes())
    content[len(content) // 2] ^= 1
    _shard(folder).write_bytes(content)


DAMAGES = {
    "a shard is gone": lambda folder: _shard(folder).unlink(),
    "an empty shard": lambda folder: _shard(folder).write_bytes(b""),
    "half a shard": lambda folder: _shard(folder).write_bytes(_shard(folder).read_bytes()[:70]),
    "another shard's": lambda folder: _shard(folder).write_bytes(
        next(folder.glob("*-02.tfrecord")).read_bytes()
    ),
    "a flipped bit": _flipped,
    "no digest": lambda folder: _changed(folder, sha256=[]),
    "no name": lambda folder: (folder / "done.json").write_text('{"count": 9}'),
    "no object": lambda folder: (folder / "done.json").write_text("[]"),
    "no text": lambda folder: (folder / "done.json").write_bytes(b"\xff\xfe"),
    "nothing": lambda folder: (folder / "done.json").write_text(""),
    **{
        f"a count of {count!r}": lambda folder, count=count: _changed(folder, count=count)
        for count in (8, 10, 0, -1, "9", 9.7, True, None, [9])
    },
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_made_anew(damage, tmp_path, caplog):
    def make():
        return records.cached_records(str(tmp_path), KEY, lambda: map(_window, range(9)))

    whole = list(tf.data.TFRecordDataset(make().files()).as_numpy_iterator())
    DAMAGES[damage](next(tmp_path.iterdir()))
    assert list(tf.data.TFRecordDataset(make().files()).as_numpy_iterator()) == whole
    assert "are damaged" in caplog.text
    caplog.clear()
    make()
    assert not caplog.text  # And stay.


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with raises_code("unavailable", "features_dir"):
        records.cached_records(str(tmp_path / "file"), KEY, lambda: [_window(0)])


# What a killed process leaves, in the folder of one cache.
LEFT = {
    "in its shards": ("89abcdef-00.tfrecord", "done.json.01234567.tmp", ".lock"),
    "in its shards, of an earlier version": ("89abcdef-00.tfrecord", "89abcdef.writing"),
    "after its last file": (".lock",),
}
FOREIGN = ("notes.tfrecord", "done.json.mine.tmp", "89abcdef.txt")


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("case", LEFT)
def test_what_a_killed_process_left_is_removed(case, is_written, tmp_path):
    def make():
        return records.cached_records(str(tmp_path), KEY, lambda: [_window(0)])

    folder = pathlib.Path(make().prefix).parent
    if not is_written:
        (folder / "done.json").unlink()
    for name in (*LEFT[case], *FOREIGN):
        (folder / name).write_text("x")
    files = {pathlib.Path(file).name for file in make().files()}
    assert {path.name for path in folder.iterdir()} == {*files, *FOREIGN, "done.json"}


@pytest.mark.long
def test_of_two_processes_one_writes(tmp_path):
    folder = pathlib.Path(records.cached_records(str(tmp_path), KEY, lambda: [_window(0)]).prefix)
    (folder.parent / "done.json").unlink()
    other = hold(folder.parent)
    with futures.ThreadPoolExecutor(1) as pool:
        mine = pool.submit(records.cached_records, str(tmp_path), KEY, lambda: [_window(0)])
        try:
            with pytest.raises(futures.TimeoutError):
                mine.result(timeout=3)
        finally:
            other.kill()
            other.wait()
        assert mine.result().count == 1


@pytest.mark.parametrize(("batch", "pad_to"), [(8, 8), (7, 8), (8, None)])
def test_evaluation_sees_every_window_once(batch, pad_to, written):
    seen = []
    pairs = zip(
        records.eval_batches(written, batch, 24, pad_to),
        records.eval_fields(written, batch, pad_to),
        strict=True,
    )
    for inputs, windows in pairs:
        assert len(inputs["input_mask"]) == batch  # The last one is filled up.
        seen += windows["question"].flat_values.numpy().tolist()
        inputs = {name: values[: windows["ids"].nrows()] for name, values in inputs.items()}
        width = inputs["input_word_ids"].shape[1]
        assert width == 24 if pad_to is None else width % 8 == 0
        lengths = inputs["input_mask"].numpy().sum(1)
        assert lengths.tolist() == windows["ids"].row_lengths().numpy().tolist()
        types = inputs["input_type_ids"].numpy()
        assert (types.sum(1) == lengths - 3).all() and not types[:, :3].any()
    assert sorted(seen) == list(range(300))


def test_training_batches(written):
    def run(seed):
        return [
            (inputs["input_word_ids"].numpy().tolist(), labels.numpy().tolist())
            for inputs, labels in records.train_batches(written, 8, 80, seed, 24)
        ]

    batches = run(1)
    assert len(batches) == 80 and batches == run(1) != run(2)
    assert all(len(labels) == 8 and labels[0] == [3, 3] for _, labels in batches)
    widths = [len(ids[0]) for ids, _ in batches]
    assert set(widths) == {8, 16, 24} and max(map(widths.count, set(widths))) < 60


@pytest.mark.parametrize(("order", "twice"), [("epoch", False), ("no", False), ("run", True)])
def test_no_batch_holds_a_window_twice(order, twice, tmp_path):
    """As of examples in memory; the order of earlier versions brought copies together."""

    def named(i):  # By its answer's place.
        window = _window(i)
        return dataclasses.replace(window, labels=(i, i))

    few = records.cached_records(str(tmp_path), KEY, lambda: map(named, range(40)))
    batches = [
        labels.numpy()[:, 0].tolist()
        for _, labels in records.train_batches(few, 8, 60, 0, 24, group_by_length=order)
    ]
    assert len(batches) == 60
    assert any(len(set(batch)) < 8 for batch in batches) is twice
    assert np.bincount(np.concatenate(batches), minlength=40).min() >= 8
    if not twice:
        epochs = np.sort(np.reshape(batches, [12, 40]), axis=1)
        np.testing.assert_array_equal(epochs, np.tile(np.arange(40), [12, 1]))


def test_training_visits_all_windows_of_an_epoch(written):
    counts = np.zeros(300, int)
    for inputs, _ in records.train_batches(written, 10, 60, 0, 24, pad_to=None):
        assert inputs["input_word_ids"].shape == (10, 24)
        lengths = inputs["input_mask"].numpy().sum(1)
        for length in lengths:
            counts[length] += 1
    expected = np.bincount([len(_window(i).ids) for i in range(300)], minlength=300)
    np.testing.assert_array_equal(counts, 2 * expected)
