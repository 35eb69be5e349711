"""Schemes of tags: the examples of their definitions, and round trips of random entities."""

import itertools
import json
import pathlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from adapter_bert_tf.data.tagging.schemes import (
    SCHEMES,
    detect_scheme,
    entities,
    from_iob2,
    join_tag,
    labels_of,
    split_tag,
    to_iob2,
    transitions,
)
from adapter_bert_tf.data.tagging.tag_format import Sentence
from adapter_bert_tf.tasks import tag_metrics
from tests.refusals import raises_code

GOLDEN = pathlib.Path(__file__).parent.parent.parent / "golden" / "tagging" / "entities.json"
CASES = json.loads(GOLDEN.read_text())["cases"]

# Two persons side by side, the first of two words; then a place of three, and one of one word.
SAME = {
    "IOB2": "B-PER I-PER B-PER O B-LOC I-LOC I-LOC B-ORG",
    "IOB1": "I-PER I-PER B-PER O I-LOC I-LOC I-LOC I-ORG",
    "BIOES": "B-PER E-PER S-PER O B-LOC I-LOC E-LOC S-ORG",
    "BILOU": "B-PER L-PER U-PER O B-LOC I-LOC L-LOC U-ORG",
}


def sentences(*texts):
    """Sentences of these tags; the first word of each is in line 1, 11, 21, ..."""
    tags = [tuple(text.split()) for text in texts]
    return [Sentence(("x",) * len(t), t, 1 + 10 * i) for i, t in enumerate(tags)]


@pytest.mark.parametrize("scheme", SAME)
def test_the_same_entities_in_all_schemes(scheme):
    tags, iob2 = SAME[scheme].split(), SAME["IOB2"].split()
    assert detect_scheme(sentences(SAME[scheme]), "a") == scheme
    assert to_iob2(tags, scheme) == tuple(iob2)
    assert from_iob2(iob2, scheme) == tuple(tags)
    expected = [("PER", 0, 2), ("PER", 2, 3), ("LOC", 4, 7), ("ORG", 7, 8)]
    assert entities(tags) == entities(iob2) == expected


DETECTED = {
    "no entities": (["O O", "O"], "IOB2"),
    "only B: IOB2": (["B-PER O B-PER", "O"], "IOB2"),
    "B side by side": (["B-PER B-PER"], "IOB2"),
    "only I: IO": (["I-PER I-PER O I-LOC I-PER"], "IO"),
    "one B after an I of its type": (["I-PER I-LOC", "I-PER B-PER"], "IOB1"),
    "only single words": (["S-PER O"], "BIOES"),
    "only units": (["U-PER O"], "BILOU"),
    "only long ones": (["B-PER E-PER"], "BIOES"),
    "types with hyphens": (["B-creative-work I-creative-work O"], "IOB2"),
    "no types": (["B I O B"], "IOB2"),
    "no types, one letter": (["S O"], "BIOES"),
    "parts of speech": (["NOUN VERB", "PUNCT"], "plain"),
    "parts of speech of one letter": (["N V I O", "S"], "plain"),
    "plain tags and O": (["person O"], "plain"),
    "lower case": (["b-per o"], "plain"),
    "brackets": (["-LRB- NN -RRB-"], "plain"),
    "types and letters alone": (["B-PER I-PER B I"], "IOB2"),
    "empty sentences": (["", "B-PER I-PER", ""], "IOB2"),
}


@pytest.mark.parametrize("name", DETECTED)
def test_detection(name):
    texts, scheme = DETECTED[name]
    assert detect_scheme(sentences(*texts), "a") == scheme


DOUBTFUL = {  # Plain tags, and the line and the tag that a warning names.
    "lower case": (["o b-per"], "line 2: 'b-per'"),
    "an underscore": (["O O", "B_PER O"], "line 11: 'B_PER'"),
    "the prefix last": (["PER-B O"], "line 1: 'PER-B'"),
    "an empty type": (["O B- I-"], "line 2: 'B-'"),
    "types alone": (["PER O"], "line 2: 'O'"),
    "parts of speech": (["NN -LRB- PRP$ , ''", "NOUN X"], None),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_plain_tags_that_look_like_entities(name, caplog):
    texts, expected = DOUBTFUL[name]
    assert detect_scheme(sentences(*texts), "a.conll") == "plain"
    line, _, tag = (expected or "").partition(": ")
    assert (
        (f"a.conll, {line}" in caplog.text)
        == (f"Received: {tag}" in caplog.text)
        == (expected is not None)
    )


# The line of the tag that does not fit, or of the last word before the end of a sentence.
MIXED = {
    "IOB1 in IOB2": (["B-PER I-PER O"] * 3 + ["O I-PER O"], "line 32"),
    "IOB2 in IOB1": (["I-PER I-PER O"] * 3 + ["O B-PER O"], "line 32"),
    "another type": (["B-PER I-PER O"] * 3 + ["B-PER I-LOC"], "line 32"),
    "two letters for the end": (["B-PER E-PER"] * 3 + ["O B-PER L-PER"], "line 33"),
    "an open entity": (["B-PER E-PER"] * 3 + ["O B-PER"], "line 32"),
    "an open entity before O": (["B-PER E-PER"] * 3 + ["B-PER O"], "line 32"),
    "no prefix": (["B-PER O", "PER O"], "line 11"),
    "BMES": (["B-PER M-PER E-PER"], "line 2"),
    "a letter alone": (["B-PER I-PER", "B-PER I"], "line 12"),
    "a prefix among plain tags": (["NOUN VERB", "NOUN B-X"], "line 12"),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_mix_is_named_by_line(name):
    texts, line = MIXED[name]
    with raises_code("damaged: a.conll", line):
        detect_scheme(sentences(*texts), "a.conll")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_entities_are_those_of_conlleval(case):
    for side in ("gold", "predicted"):
        expected = [
            (kind, first, last + 1) for kind, first, last in case["entities"]["default"][side]
        ]
        assert entities(case[side]) == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "B-a-b", "I-a-b", "B", "I"]), max_size=8))
def test_entities_are_those_of_seqeval(tags):
    expected = [(kind, first, last + 1) for kind, first, last in get_entities(tags)]
    assert entities(tags) == expected


@pytest.mark.parametrize(
    ("tag", "parts"),
    [
        ("O", ("", "")),
        ("B-PER", ("B", "PER")),
        ("B-a-b", ("B", "a-b")),
        ("B--", ("B", "-")),
        ("B", ("B", "_")),
        ("PER", ("", "")),
        ("", ("", "")),
    ],
)
def test_parts_of_tags(tag, parts):
    assert split_tag(tag) == parts
    assert not parts[0] or join_tag(*parts) == tag


KINDS = st.sampled_from(["PER", "LOC", "creative-work", "B", "O"])


@st.composite
def iob2_sentences(draw):
    """Sentences of random entities, as IOB2."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        tags = []
        for kind, words in draw(st.lists(st.tuples(KINDS, st.integers(0, 3)), max_size=6)):
            tags += [f"B-{kind}", *[f"I-{kind}"] * (words - 1)] if words else ["O"]
        found.append(tuple(tags))
    return found


@settings(max_examples=200, deadline=None)
@given(iob2_sentences())
def test_round_trips(gold):
    for scheme in SAME:
        written = [from_iob2(tags, scheme) for tags in gold]
        read = [Sentence(tags, tags, 1) for tags in written]
        detected = detect_scheme(read, "a")
        assert [to_iob2(tags, detected) for tags in written] == gold
        assert [entities(tags) for tags in written] == [entities(tags) for tags in gold]


@settings(max_examples=200, deadline=None)
@given(iob2_sentences())
def test_io_joins_what_touches(gold):
    written = [from_iob2(tags, "IO") for tags in gold]
    read = [to_iob2(tags, "IO") for tags in written]
    assert all(tag == "O" or tag.startswith("I-") for tags in written for tag in tags)
    assert [from_iob2(tags, "IO") for tags in read] == written


@settings(max_examples=25, deadline=None)
@given(iob2_sentences())
def test_gold_against_gold(gold):
    has_entities = any(entities(tags) for tags in gold)
    for scheme in set(SCHEMES) - {"plain"}:
        read = [to_iob2(from_iob2(tags, scheme), scheme) for tags in gold]
        scores = tag_metrics.evaluate(read, read, scheme)
        expected = 1.0 if has_entities else 0.0
        assert scores["f1"] == scores["strict_f1"] == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), max_size=8))
def test_any_tags_become_valid(tags):
    """Predictions of argmax may begin with I: the entities are those of conlleval."""
    assert entities(to_iob2(tags, "IOB2")) == entities(tags)
    for scheme in SAME:
        assert entities(from_iob2(tags, scheme)) == entities(tags)


def test_labels():
    iob2 = [("O", "B-b"), ("B-a-c", "I-a-c")]
    assert labels_of(iob2, "IOB2") == ["O", "B-a-c", "I-a-c", "B-b", "I-b"]
    assert labels_of([("B", "O")], "IOB2") == ["O", "B", "I"]
    assert labels_of([("VERB", "NOUN")], "plain") == ["NOUN", "VERB"]


LABELS = ["O", "B-A", "I-A", "B-B", "I-B"]


def test_transitions():
    start, between, end = transitions(LABELS, "IOB2")
    assert end.all() and start.tolist() == [True, True, False, True, False]
    # From O, B-A, I-A, B-B, I-B to the same.
    assert between.astype(int).tolist() == [
        [1, 1, 0, 1, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 0, 1, 1],
        [1, 1, 0, 1, 1],
    ]
    start, between, end = transitions(["NOUN", "VERB"], "plain")
    assert start.all() and end.all() and between.all() and between.shape == (2, 2)


@pytest.mark.parametrize("scheme", ["IOB2", "IOB1", "BIOES", "BILOU", "IO"])
def test_what_transitions_allow_can_be_written(scheme):
    """All sequences of three labels: those allowed are the same after writing and reading."""
    start, between, _ = transitions(LABELS, scheme)
    for ids in itertools.product(range(len(LABELS)), repeat=3):
        tags = tuple(LABELS[i] for i in ids)
        allowed = start[ids[0]] and np.all(between[ids[:-1], ids[1:]])
        assert allowed == (to_iob2(from_iob2(tags, scheme), scheme) == tags)
