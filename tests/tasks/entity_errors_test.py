"""Outcomes, confusions and groups of entities, by hand."""

import pytest

from adapter_bert_tf.tasks.entity_errors import (
    FOUND,
    MISSED,
    NO_ENTITY,
    WRONG_BORDER,
    WRONG_BOTH,
    WRONG_TYPE,
    EntityGroups,
    confusions,
    length_group,
    outcome,
    rates,
)

A, B = "a", "b"
OUTCOMES = {  # Of the entity (A, 2, 4), given the others.
    "the same": ([(B, 0, 1), (A, 2, 4)], FOUND, (A, 2, 4)),
    "another type": ([(B, 2, 4)], WRONG_TYPE, (B, 2, 4)),
    "a part": ([(A, 3, 4)], WRONG_BORDER, (A, 3, 4)),
    "more words": ([(A, 0, 9)], WRONG_BORDER, (A, 0, 9)),
    "its type counts more": ([(B, 1, 3), (A, 3, 5)], WRONG_BORDER, (A, 3, 5)),
    "neither": ([(B, 1, 3)], WRONG_BOTH, (B, 1, 3)),
    "only neighbours": ([(A, 0, 2), (A, 4, 5)], MISSED, None),
    "none": ([], MISSED, None),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_outcomes(case):
    others, found, decides = OUTCOMES[case]
    assert outcome((A, 2, 4), others) == (found, decides)


@pytest.mark.parametrize(
    ("gold", "predicted", "pairs"),
    [
        ([], [], []),
        ([(A, 0, 1)], [], [(A, NO_ENTITY)]),
        ([], [(B, 0, 1)], [(NO_ENTITY, B)]),
        # The one that shares more words; the other one meets an entity, too.
        ([(A, 0, 4)], [(B, 0, 1), (A, 1, 4)], [(A, A)]),
        ([(A, 0, 1), (A, 1, 2)], [(B, 0, 2), (A, 3, 4)], [(A, B), (A, B), (NO_ENTITY, A)]),
    ],
)
def test_confusions(gold, predicted, pairs):
    assert confusions(gold, predicted) == pairs


def test_groups():
    groups = EntityGroups()
    for is_predicted, is_found in ((False, True), (False, False), (True, True)):
        groups.add("2", is_predicted, is_found)
    groups.add("1", True, False)
    first, second = groups.rows()
    assert first == {"group": "1", "gold": 0, "predicted": 1, "found": 0} | rates(0, 1, 0)
    assert second == {"group": "2", "gold": 2, "predicted": 1, "found": 1} | {
        "precision": 1.0, "recall": 0.5, "f1": 0.666667
    }  # fmt: skip
    assert rates(0, 0, 0) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


@pytest.mark.parametrize(
    ("words", "group"), [(1, "1"), (4, "4"), (5, "5 or more"), (9, "5 or more")]
)
def test_lengths(words, group):
    assert length_group((A, 3, 3 + words)) == group
