"""GLUE from TensorFlow Datasets: prepared data, not a mock of it."""

import pathlib

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from adapter_bert_tf.data.tfds import read_tfds
from adapter_bert_tf.tasks import find_task
from tests.refusals import raises_code
from tests.support import encoded
from tests.tfds_data import CONFIGS, write_tfds


@pytest.mark.parametrize("config", CONFIGS)
def test_reads_what_tensorflow_datasets_prepared(config, tmp_path):
    write_tfds(tmp_path, config)
    texts, _, _, labels = CONFIGS[config]
    task = find_task(config)
    read = read_tfds(task, str(tmp_path), ["train", "dev", "test"])
    mismatched = {"dev_mismatched", "test_mismatched"} if config == "mnli" else set()
    assert set(read) == {"train", "dev", "test"} | mismatched
    train = read["train"]
    assert train.texts()[0] == tuple(f"{name} é 0" for name in texts)
    assert train.labels == labels and train.indices == ["0", "1"]
    assert encoded(task, train) is not None
    assert read["test"].labels is None


def test_tasks_that_are_not_there(tmp_path):
    with raises_code("not_found", "'sms_spam_collection'", "data_source"):
        read_tfds(find_task("sms_spam_collection"), str(tmp_path), ["train"])


def test_nothing_is_downloaded_into_a_folder_of_tables(tmp_path):
    (tmp_path / "train.tsv").write_text("0\ta\n")
    with raises_code("mismatch", "'train.tsv'", "data_source") as raised:
        read_tfds(find_task("rte"), str(tmp_path), ["train"])
    # The message must not ask to remove the user's tables; commands print their own flags.
    assert "remove" not in str(raised.value)
    assert raised.value.arguments == ("data_dir", "data_source='tsv'")
    assert [path.name for path in tmp_path.iterdir()] == ["train.tsv"]


def test_no_network_is_one_message(tmp_path, monkeypatch):
    def refuse(self, *arguments, **named):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", refuse)
    with raises_code("unavailable", "'glue/rte'", "data_dir"):
        read_tfds(find_task("rte"), str(tmp_path), ["train"])


def _cut(path):
    path.write_bytes(path.read_bytes()[:-5])


def _less(path):
    """Without its last record, as if the file had always ended there."""
    first = next(iter(tf.data.TFRecordDataset(str(path)))).numpy()
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(first)


def _flipped(path):
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)


DAMAGED = {
    "records that are cut off": ("*train.tfrecord*", _cut, "damaged: split train:"),
    "a record less": ("*train.tfrecord*", _less, "damaged: expected to contain 2 elements"),
    "a bit that is flipped": ("*train.tfrecord*", _flipped, "damaged: split train:"),
    "no records": ("*train.tfrecord*", pathlib.Path.unlink, "damaged: split train:"),
    "info that is no JSON": ("dataset_info.json", _cut, "unavailable: 'glue/rte'"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_damaged_is_named(case, tmp_path):
    files, damage, message = DAMAGED[case]
    write_tfds(tmp_path, "rte")
    (path,) = tmp_path.rglob(files)
    damage(path)
    with raises_code(message) as raised:
        read_tfds(find_task("rte"), str(tmp_path), ["train"])
    said = str(raised.value)
    assert str(tmp_path) in said and "it is prepared again" in said
    assert "{{" not in said and "[Op" not in said
