"""Tagged words of TensorFlow Datasets: prepared data, not a mock of it."""

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from adapter_bert_tf.data.tagging.tag_format import TagFormat
from adapter_bert_tf.data.tagging.tagged_files import in_iob2
from adapter_bert_tf.data.tagging.tfds import read_tfds_tags
from tests.refusals import raises_code

NAMES = ["O", "B-PER", "I-PER"]
WORDS = [["a", "Zoë", "b"], ["c"], []]
IDS = [[0, 1, 2], [0], []]
TAGS = [("O", "B-PER", "I-PER"), ("O",), ()]


def write_tfds(folder, name, config, splits, **columns):
    """Files of a dataset; TensorFlow Datasets has the tags' names of the two that it knows."""
    rows = tf.ragged.constant(WORDS), tf.ragged.constant(IDS, tf.int64)
    features = {"tokens": tfds.features.Sequence(tfds.features.Text())}
    for column, kind in columns.items():
        features[column] = tfds.features.Sequence(kind)
    values = {"tokens": rows[0]} | dict.fromkeys(columns, rows[1])
    tfds.dataset_builders.store_as_tfds_dataset(
        name=name,
        version="1.0.0",
        config=config,
        features=tfds.features.FeaturesDict(features),
        split_datasets={split: tf.data.Dataset.from_tensor_slices(values) for split in splits},
        data_dir=str(folder),
        disable_shuffling=True,
    )


LABEL = tfds.features.ClassLabel(names=NAMES)


@pytest.mark.parametrize(
    ("name", "splits", "columns"),
    [
        ("wikiann/en", ["validation", "test", "train"], {"tags": LABEL}),
        ("conll2003/conll2003", ["train", "dev", "test"], {"ner": LABEL, "pos": LABEL}),
    ],
)
def test_reads_what_tensorflow_datasets_prepared(name, splits, columns, tmp_path):
    write_tfds(tmp_path, *name.split("/"), splits, **columns)
    for split in ("train", "dev", "test"):
        place, sentences = read_tfds_tags(name, str(tmp_path), split, TagFormat())
        assert name.split("/")[0] in place
        assert [s.words for s in sentences] == [tuple(words) for words in WORDS]
        assert [s.tags for s in sentences] == TAGS
        assert [s.line_of(0) for s in sentences] == [1, 2, 3]
    assert in_iob2(sentences, place).scheme == "IOB2"


def test_another_feature(tmp_path):
    pos = tfds.features.ClassLabel(names=["X", "NOUN", "VERB"])
    write_tfds(tmp_path, "own", "en", ["train"], tags=LABEL, pos=pos)
    form = TagFormat(tag_column="pos")
    _, sentences = read_tfds_tags("own/en", str(tmp_path), "train", form)
    assert sentences[0].tags == ("X", "NOUN", "VERB")


@pytest.mark.parametrize(
    ("split", "form", "code"),
    [
        ("dev", {}, "not_found: dev split"),
        ("train", {"tag_column": "chunks"}, "not_found: 'chunks'"),
        ("train", {"word_column": "words"}, "not_found: 'words'"),
    ],
)
def test_what_is_missing(split, form, code, tmp_path):
    write_tfds(tmp_path, "wikiann", "en", ["train"], tags=LABEL)
    with raises_code(code):
        read_tfds_tags("wikiann/en", str(tmp_path), split, TagFormat(**form))


def test_numbers_without_names(tmp_path):
    write_tfds(tmp_path, "own", "en", ["train"], tags=tf.int64)
    with raises_code("not_found: no names"):
        read_tfds_tags("own/en", str(tmp_path), "train", TagFormat())
