"""What a tagging run writes, from logits by hand."""

import json

import numpy as np
import pytest

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.tagging.schemes import labels_of
from adapter_bert_tf.data.tagging.tag_format import Sentence, TagFormat
from adapter_bert_tf.data.tagging.tagged_files import TaggedSentences, read_tagged
from adapter_bert_tf.runners.tagging import result_files
from adapter_bert_tf.runners.tagging.task_data import TagData

IOB2 = ["O", "B-X", "I-X", "B-Y", "I-Y"]


@pytest.fixture
def task(tiny_base_folder):
    """A function from the test sentences and their scheme to the data of a run."""
    vocabulary = read_vocabulary(f"{tiny_base_folder}/vocab.txt")

    def of(test, scheme="IOB2", form=None, labels=IOB2, **splits):
        return TagData(
            {**splits, "test": test}, frozenset({"test"}), labels, scheme, 2, "viterbi",
            vocabulary, 12, "data", "f1", form,
        )  # fmt: skip

    return of


def logits(*numbers, tags=5):
    """Logits `[words, tags]` of these tags, with the probability 0.9; None: no piece."""
    rows = np.ma.array(np.full((len(numbers), tags), np.log(0.1 / (tags - 1)), np.float32))
    for word, number in enumerate(numbers):
        if number is None:
            rows[word] = np.ma.masked
        else:
            rows[word, number] = np.log(0.9)
    return rows


def test_sentences_of_a_dataset_become_columns(task, tmp_path):
    sentences = [Sentence(("a", "b"), ("B-X", "I-X"), 1), Sentence(("c",), ("O",), 2)]
    data = task(TaggedSentences("wikiann", sentences, "IOB2"))
    result_files.write_predictions(str(tmp_path), data, [logits(1, 2), logits(0)])
    written = (tmp_path / "test_predictions.conll").read_text()
    assert written == "a\tB-X\nb\tI-X\n\nc\tO\n\n"
    first, second = map(json.loads, (tmp_path / "test_entities.jsonl").open())
    (entity,) = first["entities"]
    assert entity.pop("probability") == pytest.approx(0.9, abs=1e-6)
    assert entity == {"text": "a b", "type": "X", "start": 0, "end": 2}
    assert second == {"words": ["c"], "entities": []}


# The scheme of the training, the tags of the test file, and those that are written.
SCHEMES = {
    "the same": ("IOB2", ["B-X", "I-X", "B-X"], ["B-X", "I-X", "B-X"]),
    "another": ("IOB2", ["B-X", "E-X", "S-X"], ["B-X", "E-X", "S-X"]),
    "IO would lose a border": ("IOB2", ["I-X", "I-X", "I-X"], ["B-X", "I-X", "B-X"]),
    "IO shows no border": ("IOB1", ["I-X", "I-X", "I-X"], ["I-X", "I-X", "B-X"]),
    "no entity shows no scheme": ("BILOU", ["O", "O", "O"], ["B-X", "L-X", "U-X"]),
}


@pytest.mark.parametrize("case", SCHEMES)
def test_tags_are_written_in_the_scheme_of_the_file(case, task, tmp_path):
    scheme, tags, expected = SCHEMES[case]
    path = tmp_path / "test.conll"
    path.write_text("".join(f"w {tag}\n" for tag in tags))
    form = TagFormat()
    data = task(read_tagged(str(path), form, scheme), scheme, form)
    result_files.write_predictions(str(tmp_path), data, [logits(1, 2, 1)])
    lines = (tmp_path / "test_predictions.conll").read_text().splitlines()
    assert [line.split()[-1] for line in lines] == expected


def test_words_without_pieces_have_no_entity(task, tmp_path):
    sentences = [Sentence(("a", "\ufe0f", "b"), None, 1)]
    data = task(TaggedSentences("x", sentences, "IOB2"))
    result_files.write_predictions(str(tmp_path), data, [logits(1, None, 3)])
    lines = (tmp_path / "test_predictions.conll").read_text().splitlines()
    assert [line.split("\t")[1] for line in lines[:-1]] == ["B-X", "O", "B-Y"]


def test_plain_tags_have_no_file_of_entities(task, tmp_path, capsys):
    sentences = [Sentence(("a", "b"), ("N", "V"), 1)]
    labels = labels_of([("N", "V")], "plain")
    data = task(TaggedSentences("x", sentences, "plain"), "plain", labels=labels)
    result_files.write_predictions(str(tmp_path), data, [logits(1, 0, tags=2)])
    assert [path.name for path in tmp_path.iterdir()] == ["test_predictions.conll"]
    assert "a/V b/N" in capsys.readouterr().out
