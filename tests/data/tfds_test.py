"""GLUE from TensorFlow Datasets: prepared data, written here with its own writer."""

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from adapter_bert_tf.data.labels import label_ids
from adapter_bert_tf.data.tfds import read_tfds
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks import find_task

ENTAILMENT = ["entailment", "not_entailment"]
# Config, text features, label names in TensorFlow Datasets' order, labels of the two train rows.
CONFIGS = {
    "cola": (["sentence"], ["unacceptable", "acceptable"], [0, 1], ["0", "1"]),
    "mrpc": (["sentence1", "sentence2"], ["not_equivalent", "equivalent"], [1, 0], ["1", "0"]),
    "wnli": (["sentence1", "sentence2"], ["not_entailment", "entailment"], [0, 1], ["0", "1"]),
    "rte": (["sentence1", "sentence2"], ENTAILMENT, [1, 0], ["not_entailment", "entailment"]),
    "mnli": (["premise", "hypothesis"], ["entailment", "neutral", "contradiction"], [2, 1],
             ["contradiction", "neutral"]),
    "stsb": (["sentence1", "sentence2"], None, [3.25, 0.0], ["3.25", "0.0"]),
}


def _write(folder, config):
    """Two examples a split, in descending order of `idx`."""
    texts, names, labels, _ = CONFIGS[config]
    kind = tfds.features.ClassLabel(names=names) if names else tf.float32
    features = tfds.features.FeaturesDict(
        {name: tfds.features.Text() for name in texts} | {"label": kind, "idx": tf.int32})
    values = {name: [f"{name} 1", f"{name} é 0"] for name in texts}
    train = tf.data.Dataset.from_tensor_slices(values | {"label": labels[::-1], "idx": [1, 0]})
    hidden = [-1.0, -1.0] if names is None else [-1, -1]
    test = tf.data.Dataset.from_tensor_slices(values | {"label": hidden, "idx": [1, 0]})
    parts = ["_matched", "_mismatched"] if config == "mnli" else [""]
    splits = {"train": train, **{f"validation{part}": train for part in parts},
              **{f"test{part}": test for part in parts}}
    tfds.dataset_builders.store_as_tfds_dataset(
        name="glue", version="2.0.0", config=config, features=features, split_datasets=splits,
        data_dir=str(folder), disable_shuffling=True)


@pytest.mark.parametrize("config", CONFIGS)
def test_reads_what_tensorflow_datasets_prepared(config, tmp_path):
    _write(tmp_path, config)
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
    with pytest.raises(InputError, match="has no 'sms_spam_collection': use --data_source=tsv"):
        read_tfds(find_task("sms_spam_collection"), str(tmp_path), ["train"])


def test_no_network_is_one_message(tmp_path, monkeypatch):
    def refuse(self, *arguments, **named):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", refuse)
    with pytest.raises(InputError, match=r"cannot load 'glue/rte': no route.*--data_dir"):
        read_tfds(find_task("rte"), str(tmp_path), ["train"])
