"""What a tagging run reads, and which files it refuses before anything is trained."""

import pytest

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.data.tagging.tag_format import Sentence
from adapter_bert_tf.runners.tagging import files, reading
from adapter_bert_tf.runners.tagging.task_data import data_name
from tests import support
from tests.refusals import raises_code
from tests.runners.tagging import corpus

TRAIN = {"do_train": True, "do_eval": True, "do_predict": True, "output_dir": "out"}


def config_of(folder, **values):
    values = TRAIN | {"data_dir": str(folder), "max_seq_length": 12, "stride": 3} | values
    values = {name: value for name, value in values.items() if value is not None}
    return RunConfig.from_values(Command.TAGGER, values, values)


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("\n".join(support.VOCABULARY) + "\n")
    return read_vocabulary(str(path))


@pytest.fixture
def read(tmp_path, vocabulary):
    """A function from files that replace those of the corpus, and settings, to the data."""

    def of(contents=None, **values):
        folder = corpus.write(tmp_path / "data")
        for name, text in (contents or {}).items():
            (folder / name).write_text(text)
        config = config_of(folder, **values)
        files.check_files(config)
        return reading.read(config, vocabulary, None)

    return of


REFUSED = {
    "no training words": ({"train.conll": ""}, {}, "damaged: train.conll"),
    "no dev words": ({"dev.conll": "\n\n-DOCSTART- O\n"}, {}, "damaged: dev.conll"),
    "one column": ({"train.conll": "cat\ndog\n"}, {}, "damaged: train.conll, line 1"),
    "a word without a tag": ({"dev.conll": "a\tO\nb\n"}, {}, "damaged: dev.conll, line 2"),
    "an empty tag": ({"train.conll": "a\tO\nb\t\n"}, {}, "damaged: train.conll, line 2"),
    "more types than can be decoded": (
        {"train.conll": "".join(f"a\tB-T{number}\n" for number in range(500))},
        {},
        "unsupported: 1,001",
    ),
    "an unknown dev tag": ({"dev.conll": "a\tO\nb\tB-X\n"}, {}, "mismatch: (line 2)"),
    "an unknown test tag": ({"test.conll": "a\tB-X\n"}, {}, "mismatch: test.conll"),
    "an empty test tag": (
        {"test.conll": "a\t\nb\tO\n"},
        {"separator": "\t"},
        "damaged: test.conll, line 1",
    ),
    "tags that are none": ({"test.conll": "a\tJJ\n"}, {}, "mismatch: --predict_file"),
    "no entity": ({"train.conll": "a\tB-X\tO\nb\tO\tO\n"}, {}, "damaged: --tag_column"),
    "one plain tag": ({"train.conll": "a\tN\n\nb\tN\n"}, {}, "damaged: train.conll"),
    "no entity in a column": (
        {"train.conll": "a\tO\tB-X\n"},
        {"tag_column": "1"},
        "damaged: '1'",
    ),
    "mixed schemes": (
        {"train.conll": "a\tI-LOC\n\nb\tS-PER\n"},
        {},
        "damaged: line 3",
    ),
    "a column out of range": ({}, {"tag_column": "5"}, "not_found: train.conll, line 3"),
    "a column without a number": ({}, {"tag_column": "ner"}, "not_found: tag_column"),
    "no folder and no file": ({}, {"data_dir": None}, "missing: --train_file"),
    "no dataset": ({}, {"data_source": "tfds"}, "missing: --tfds_name"),
    "two dev files": ({"valid.conll": "a\tO\n"}, {}, "not_found: --dev_file"),
    "another extension": ({"x.json": ""}, {"dev_file": "x.json"}, "invalid: .conll"),
    "a scheme that cannot hold the tags": ({}, {"scheme": "IO"}, "mismatch: --scheme"),
    "another metric": ({}, {"metric": "mcc"}, "invalid: --metric"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused(case, read):
    contents, values, expected = REFUSED[case]
    with raises_code(expected):
        read(contents, **values)


def test_what_is_read(read, capsys):
    data = read(comments=True)
    assert (data.name, data.metric, data.adapter_name) == ("tagging", "eval_f1", "data")
    assert data.labels == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert {split: len(part) for split, part in data.splits.items()} == corpus.SIZES
    record = data.record()
    assert record["windows"]["train"] == data.count > record["examples"]["train"]
    assert record["words"]["dev"] == sum(len(words) for words, _ in corpus.sentences(12, 1))
    assert len(data.with_dev_subset(5, 0).splits["dev"]) == 5
    assert "Tags: IOB2" in capsys.readouterr().out


NAMES = {  # Of the data, for the adapter: settings, and the name.
    "a folder": ({"data_dir": "some/letters/"}, "letters"),
    "this folder": ({"data_dir": "."}, "here"),
    "the folder above": ({"data_dir": ".."}, "above"),
    "a bucket": ({"data_dir": "gs://bucket/letters/"}, "letters"),
    "a file of a folder": ({"data_dir": None, "train_file": "./train.conll"}, "here"),
    "a file": ({"data_dir": None, "train_file": "train.conll"}, "tagging"),
    "as given": ({"data_dir": ".", "adapter_name": "mine"}, "mine"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_of_the_data(case, tmp_path, monkeypatch):
    settings, expected = NAMES[case]
    (tmp_path / "above" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "above" / "here")
    assert data_name(config_of("", **settings)) == expected


def test_a_dataset_of_tfds(read, monkeypatch):
    """`tests/data/tagging/tfds_test.py` reads one."""
    asked = []

    def dataset(name, folder, split, form):
        asked.append((name, split, form.tag_column))
        return f"{name}/{split}", [Sentence(("a", "b"), ("I-LOC", "O"), 1, step=0)]

    monkeypatch.setattr(reading, "read_tfds_tags", dataset)
    data = read(data_source="tfds", tfds_name="wikiann/en", tag_column="ner_tags")
    assert asked == [("wikiann/en", split, "ner_tags") for split in ("train", "dev", "test")]
    assert (data.adapter_name, data.scheme, data.form) == ("wikiann_en", "IO", None)


def test_a_subset_keeps_the_labels_of_all(read):
    data = read(max_train_examples=2, seed=3)
    assert len(data.splits["train"]) == 2 and len(data.labels) == 5


def test_a_given_scheme_that_fits_is_that_of_the_run(read):
    text = "cat\tI-PER\n\nhouse\tI-LOC\n"
    both = dict.fromkeys(("train.conll", "dev.conll", "test.conll"), text)
    assert read(both).scheme == "IO"
    assert read(both, scheme="IOB1").scheme == "IOB1"
    assert read(both, scheme="plain").labels == ["I-LOC", "I-PER"]


FOUND = {
    "the usual names": (["train.conll", "dev.conll"], ["train.conll", "dev.conll"]),
    "of CoNLL-2003": (
        ["eng.train", "eng.testa", "eng.testb", "README.txt"],
        ["eng.train", "eng.testa"],
    ),
    "of GermEval": (["NER-de-train.tsv", "NER-de-dev.tsv"], ["NER-de-train.tsv", "NER-de-dev.tsv"]),
    "a valid file": (["train.txt.gz", "valid.txt.gz"], ["train.txt.gz", "valid.txt.gz"]),
    "objects": (["train.jsonl", "validation.jsonl"], ["train.jsonl", "validation.jsonl"]),
    "a shorter name first": (["train.conll", "train.small.conll", "dev.bio"], None),
    "other files do not count": (
        ["train.conll", "train.csv", "dev.conll", "dev.md"],
        ["train.conll", "dev.conll"],
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_the_files_of_a_folder(case, tmp_path):
    names, expected = FOUND[case]
    for name in names:
        (tmp_path / name).touch()
    config = config_of(tmp_path)
    if expected is None:
        with raises_code("not_found", "--train_file"):
            files.file_of(config, "train")
        return
    found = [files.file_of(config, split) for split in ("train", "dev")]
    assert found == [str(tmp_path / name) for name in expected]
