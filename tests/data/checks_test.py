"""The report on the data, and one warning for each odd thing."""

import numpy as np
import pytest

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data import checks
from adapter_bert_tf.data.batches import tokenize
from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.labels import ONE_LABEL
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.task_types import table_type
from adapter_bert_tf.tasks import find_task


@pytest.fixture(scope="module")
def encoder(tiny_base_folder):
    return TextEncoder(read_vocabulary(f"{tiny_base_folder}/vocab.txt"), 8)


def _examples(texts, labels=None):
    return Examples(
        texts,
        None,
        labels,
        list(map(str, range(len(texts)))),
        [("f.tsv", i + 2) for i in range(len(texts))],
    )


def _warnings(encoder, caplog, **splits):
    examples = {split: _examples(texts) for split, texts in splits.items()}
    features = {split: tokenize(part, encoder) for split, part in examples.items()}
    checks.warn(examples, features, encoder)
    return "\n".join(row.getMessage() for row in caplog.records if row.name == "absl")


CASES = {
    "nothing odd": ({"train": ["the cat sat"], "dev": ["a dog ran"]}, None),
    "empty": (
        {"train": ["the cat", "  "]},
        "1 of 2 examples of train have an empty text; the first is in f.tsv, line 3",
    ),
    "unknown": ({"dev": ["zebra zebra zebra"]}, "60% of the word pieces of dev are"),
    "cut": (
        {"dev": ["the cat"] * 9 + ["the cat sat on the mat in the house"]},
        "10% of the inputs of dev are longer than 8",
    ),
    "overlap": (
        {"train": ["the cat", "a dog"], "test": ["the mat", "a dog"]},
        "1 of 2 examples of test are in the training data too; the first is in f.tsv, line 3",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_warnings(case, encoder, caplog):
    splits, expected = CASES[case]
    logged = _warnings(encoder, caplog, **splits)
    assert expected in logged if expected else not logged


def test_report(encoder):
    examples = {"train": _examples(["the cat", "the cat sat on the mat today"], ["1", "1"])}
    features = {"train": tokenize(examples["train"], encoder, np.ones(2, np.int32))}
    lines = checks.report(find_task("sst-2"), examples, features).splitlines()
    assert lines[0] == "What SST-2 holds:"
    assert lines[2].split() == ["train", "2", "6", "8", "50.0%", "1", "2"]


def test_a_development_set_without_a_label(encoder, caplog):
    examples = {
        "train": _examples(["the cat", "a dog", "the mat"], ["yes", "no", "odd"]),
        "dev": _examples(["the house", "a house"], ["no", "no"]),
        "test": _examples(["red"], [None]),
    }
    features = {split: tokenize(part, encoder) for split, part in examples.items()}
    checks.warn(examples, features, encoder)
    assert [row.getMessage() for row in caplog.records if row.name == "absl"] == [
        "dev has no example of odd, yes."
    ]


SEVERAL, SCORES = table_type("multi_label"), table_type("regression")


def test_rows_without_any_label_are_counted_apart(encoder):
    cells = ["a|b", "a|c|d|e", "", "|"]
    examples = {"train": _examples(["the cat"] * 4, cells)}
    features = {"train": tokenize(examples["train"], encoder)}
    line = checks.report(find_task("sst-2"), examples, features, cells=SEVERAL).splitlines()[2]
    assert line.endswith("a 2, b 1, c 1, d 1 and 1 more, 2 without any")


@pytest.mark.parametrize(
    ("cells", "train", "dev", "said"),
    [
        (SEVERAL, ["a", "b|c"], ["a|b", "c"], []),
        (SEVERAL, ["a", "b|c"], ["a|b", "a"], ["dev has no example of c."]),
        (SCORES, ["0.5", "1"], ["2", "3"], []),
    ],
)
def test_single_labels_are_missed_and_no_scores(cells, train, dev, said, encoder, caplog):
    examples = {"train": _examples(["the cat", "a dog"], train), "dev": _examples(["x", "y"], dev)}
    features = {split: tokenize(part, encoder) for split, part in examples.items()}
    checks.warn(examples, features, encoder, cells)
    logged = [row.getMessage() for row in caplog.records if row.name == "absl"]
    assert [text for text in logged if "no example" in text] == said


TWICE = {
    "one text, two labels": (ONE_LABEL, ["the cat", "a dog", "the cat"], ["0", "1", "1"], 2),
    "one text, one label": (ONE_LABEL, ["the cat", "the cat"], ["0", "0"], 0),
    "one text, no label": (ONE_LABEL, ["the cat", "the cat"], ["0", None], 0),
    "sets in another order": (SEVERAL, ["the cat", "the cat"], ["a|b", "b|a"], 0),
    "sets": (SEVERAL, ["the cat", "the cat"], ["a|b", ""], 2),
    "scores": (SCORES, ["the cat", "the cat"], ["0.5", "1"], 0),
}


@pytest.mark.parametrize("case", TWICE)
def test_one_text_with_several_labels(case, encoder, caplog):
    cells, texts, labels, count = TWICE[case]
    examples = {"train": _examples(texts, labels)}
    checks.warn(examples, {"train": tokenize(examples["train"], encoder)}, encoder, cells)
    logged = [row.getMessage() for row in caplog.records if row.name == "absl"]
    said = [text for text in logged if "another label" in text]
    assert bool(said) == bool(count)
    assert all(text.startswith(f"{count} of {len(texts)} examples of train") for text in said)
