"""Whole files in IOB2, and tags that nothing was trained on."""

import pytest

from adapter_bert_tf.data.tagging.sentences import Sentence, TagFormat
from adapter_bert_tf.data.tagging.tagged_files import (
    check_labels,
    in_iob2,
    label_ids,
    read_tagged,
)
from tests.refusals import raises_code

IOB2 = [("O", "B-PER", "I-PER"), ("B-LOC",)]


@pytest.mark.parametrize(
    ("lines", "like", "scheme", "tags"),
    [
        ("O B-PER I-PER  B-LOC", None, "IOB2", IOB2),
        ("O I-PER I-PER  I-LOC", None, "IO", IOB2),
        ("O B-PER L-PER  U-LOC", "IOB2", "BILOU", IOB2),
        ("X Y Z  X", None, "plain", [("X", "Y", "Z"), ("X",)]),
        ("X Y Z  B-X", "plain", "plain", [("X", "Y", "Z"), ("B-X",)]),
    ],
)
def test_each_file_is_converted(lines, like, scheme, tags, tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("".join(f"w {tag}\n" if tag else "\n" for tag in lines.split(" ")))
    tagged = read_tagged(str(path), TagFormat(), like)
    assert (tagged.scheme, tagged.tags) == (scheme, tags)
    assert tagged.words == [("w",) * 3, ("w",)] and len(tagged) == 2


REPAIRED = {
    "IOB2": ("B-PER O B-PER I-LOC", ("B-PER", "O", "B-PER", "B-LOC"), "line 4"),
    "BIOES": ("B-PER O E-PER I-PER", ("B-PER", "O", "B-PER", "B-PER"), "line 3"),
}


@pytest.mark.parametrize("scheme", REPAIRED)
def test_mixed_files_are_repaired_if_asked(scheme):
    tags, repaired, line = REPAIRED[scheme]
    sentences = [Sentence(("x",) * 4, tuple(tags.split()), 1)]
    with raises_code("damaged: a.conll", line):
        in_iob2(sentences, "a.conll", scheme)
    tagged = in_iob2(sentences, "a.conll", scheme, repair=True)
    assert (tagged.scheme, tagged.tags) == (scheme, [repaired])
    with raises_code("damaged: a.conll"):  # `IO` has no B.
        in_iob2(sentences, "a.conll", "IO", repair=True)


def test_tags_without_a_prefix_are_never_repaired():
    sentences = [Sentence(("x",) * 3, ("B-PER", "I-PER", "PER"), 1)]
    with raises_code("damaged: a.conll", "line 3"):
        in_iob2(sentences, "a.conll", "IOB2", repair=True)


def test_empty_sentences_alone():
    with raises_code("damaged: somewhere"):
        in_iob2([Sentence((), (), 1)], "somewhere")


@pytest.mark.parametrize(
    ("tags", "code"),
    [
        (("O", "B-LOC", "I-LOC"), "mismatch: 'LOC' (line 4)"),
        (("O", "B-PER", "B-PE"), "mismatch: 'PE' (line 5)"),
    ],
)
def test_tags_that_were_never_seen(tags, code):
    tagged = in_iob2([Sentence(("x",) * len(tags), tags, 3)], "dev.conll")
    with raises_code(code, "dev.conll", "the training data"):
        check_labels(tagged, ["O", "B-PER", "I-PER"], "the training data")
    check_labels(tagged, ["O", *tags], "the training data")


def test_plain_tags_that_were_never_seen():
    tagged = in_iob2([Sentence(("x", "y"), ("NOUN", "VERB"), 3)], "dev.conll")
    with raises_code("mismatch: 'VERB' (line 4)", "['ADJ', 'NOUN']"):
        check_labels(tagged, ["NOUN", "ADJ"], "the adapter")


def test_ids():
    assert label_ids([("O", "B"), ()], ["O", "B"]) == [[0, 1], []]
