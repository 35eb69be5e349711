"""What a job counts of its answers."""

import pytest

from adapter_bert_tf.beam.scorer import Answer
from adapter_bert_tf.beam.totals import Totals

ENTITIES = [{"text": "Ada", "type": "PER"}, {"text": "Rome", "type": "LOC"}]
COUNTED = {  # Cells of an answer: its labels, each counted once more.
    "a class": ({"label": "yes", "probability_yes": 0.75}, {"yes": 1}),
    "several": ({"labels": "a|b", "probability_a": 0.5}, {"a": 1, "b": 1}),
    "none of several": ({"labels": "", "probability_a": 0.5}, {}),
    "a score": ({"score": 0.5}, {}),
    "entities": ({"entities": ENTITIES, "words": ["Ada"], "tags": ["B-PER"]}, {"PER": 1, "LOC": 1}),
    "no entities": ({"entities": [], "words": ["a"], "tags": ["O"]}, {}),
    "plain tags": ({"words": ["a", "b"], "tags": ["X", "X"], "probabilities": []}, {"X": 2}),
    "an answer in a text": ({"answer": "Ada", "start": 0, "end": 3, "probability": 0.5}, {}),
    "a row without one": (None, {}),
}


@pytest.mark.parametrize("case", COUNTED)
def test_labels_are_counted(case):
    cells, labels = COUNTED[case]
    totals, other = Totals(), Totals()
    for each in (totals, other):
        each.add(Answer(cells))
    totals.merge(other)
    assert totals.labels == {label: 2 * count for label, count in labels.items()}
    assert (totals.rows, totals.bad_rows) == (2, 0 if cells else 2)
