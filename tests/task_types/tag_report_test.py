"""Sentences of the report about tags: numbers with their nouns."""

import dataclasses

import pytest

from adapter_bert_tf.report import confusion_matrix
from adapter_bert_tf.report_blocks import format_count
from adapter_bert_tf.task_types import tag_report
from adapter_bert_tf.task_types.tag_details import tag_details

N = "n = 1 sentence of dev, seed 0"


def details_of(gold, predicted, scheme):
    words, sure = [["a"] * len(gold)], [[0.9] * len(gold)]
    argmax = [["I-X", *predicted[1:]]]
    return tag_details(words, [gold], [predicted], sure, argmax, (), scheme)


ENTITIES = (["B-X", "O", "B-X"], ["B-X", "O", "O"], "IOB2")
PLAIN = (["N", "V"], ["N", "N"], "plain")
SAID = {  # Part, tags, what its text has; None: there is no part.
    "decoding": (tag_report.decoding, ENTITIES, "changed 1 of 3 tags in 1 sentence: the F1"),
    "decoding of plain tags": (tag_report.decoding, PLAIN, None),
    "errors": (tag_report.errors, PLAIN, "of 1 error in 1 sentence. n = 1 sentence of dev"),
    "one type": (tag_report.types, ENTITIES, "1 type. n = 1 sentence"),
}


@pytest.mark.parametrize("case", SAID)
def test_what_the_report_says(case):
    part, tags, expected = SAID[case]
    blocks = part(details_of(*tags), N)
    text = " ".join(str(dataclasses.asdict(block)) for block in blocks)
    assert (expected in text) if expected else not blocks


@pytest.mark.parametrize(("tags", "unit"), [(ENTITIES, "2 entities"), (PLAIN, "2 words")])
def test_a_confusion_matrix_says_what_it_counts(tags, unit):
    (block,) = tag_report.confusion(details_of(*tags), N)
    caption = confusion_matrix.draw(block, "a").caption
    assert f"n = {unit}, 1 sentence of dev, seed 0." in caption and caption.count("n =") == 1


def test_counts():
    assert [format_count(n, "word") for n in (0, 1, 1204)] == ["0 words", "1 word", "1,204 words"]
