"""GLUE from TensorFlow Datasets: prepared data, not a mock of it."""

import pytest
import tensorflow_datasets as tfds

from adapter_bert_tf.data.labels import label_ids
from adapter_bert_tf.data.tfds import read_tfds
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks import find_task
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
    assert label_ids(task, train) is not None
    assert read["test"].labels is None


def test_tasks_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="has no 'sms_spam_collection': use data_source='tsv'"):
        read_tfds(find_task("sms_spam_collection"), str(tmp_path), ["train"])


def test_no_network_is_one_message(tmp_path, monkeypatch):
    def refuse(self, *arguments, **named):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", refuse)
    with pytest.raises(InputError, match=r"cannot load 'glue/rte': no route.*\(data_dir\)"):
        read_tfds(find_task("rte"), str(tmp_path), ["train"])
