"""Outcomes of predicted entities, confusions of their types, and scores of groups of entities."""

import collections
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

Entity: TypeAlias = tuple[str, int, int]  # Type, first word, word after the last.

NO_ENTITY = "no entity"
FOUND, MISSED, MADE_UP = "found", "missed", "made up"
WRONG_TYPE, WRONG_BORDER, WRONG_BOTH = "wrong type", "wrong border", "wrong type and border"
OUTCOMES = (FOUND, WRONG_TYPE, WRONG_BORDER, WRONG_BOTH, MISSED, MADE_UP)
SEEN, UNSEEN = "seen in training", "not seen in training"
LONGEST_OWN_GROUP = 4  # Words; longer entities are one group.


def outcome(entity: Entity, others: Sequence[Entity]) -> tuple[str, Entity | None]:
    """The outcome of an entity, and the entity among the `others` that decides it.

    An entity that shares no word with any of the others is `MISSED`; of predicted entities the
    caller says `MADE_UP`.
    """
    kind, first, end = entity
    meets = [other for other in others if other[1] < end and other[2] > first]
    for other in meets:
        if other[1:] == (first, end):
            return FOUND if other[0] == kind else WRONG_TYPE, other
    for other in meets:
        if other[0] == kind:
            return WRONG_BORDER, other
    return (WRONG_BOTH, meets[0]) if meets else (MISSED, None)


def confusions(gold: Sequence[Entity], predicted: Sequence[Entity]) -> list[tuple[str, str]]:
    """Pairs of expected and predicted types, `NO_ENTITY` where the other side has none.

    An expected entity is paired with the predicted one that shares most words with it.
    """
    pairs, met = [], set()
    for kind, first, end in gold:
        shared = [min(end, b) - max(first, a) for _, a, b in predicted]
        met |= {number for number, count in enumerate(shared) if count > 0}
        most = max(shared, default=0)
        pairs.append((kind, predicted[shared.index(most)][0] if most > 0 else NO_ENTITY))
    alone = (entity for number, entity in enumerate(predicted) if number not in met)
    return [*pairs, *((NO_ENTITY, entity[0]) for entity in alone)]


class EntityGroups:
    """Numbers of expected, predicted and found entities in groups, such as those of a length."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}

    def add(self, group: str, is_predicted: bool, is_found: bool) -> None:
        """Counts an expected or a predicted entity; a found one is expected and predicted."""
        counts = self._counts.setdefault(group, [0, 0, 0])
        counts[is_predicted] += 1
        counts[2] += is_found and not is_predicted

    def rows(self) -> list[dict[str, Any]]:
        """The groups in the order of their names, with precision, recall and F1."""
        return [
            {"group": group, "gold": gold, "predicted": predicted, "found": found}
            | rates(gold, predicted, found)
            for group, (gold, predicted, found) in sorted(self._counts.items())
        ]


class EntityTally:
    """Counts of the entities of sentences, for a report."""

    def __init__(self) -> None:
        self._outcomes = {outcome: [0, 0] for outcome in OUTCOMES}
        self._confused: collections.Counter[tuple[str, str]] = collections.Counter()
        self._lengths, self._novelty = EntityGroups(), EntityGroups()

    def add_sentence(self, gold: Sequence[Entity], predicted: Sequence[Entity]) -> None:
        """Counts the confusions of a sentence."""
        self._confused.update(confusions(gold, predicted))

    def add(
        self, entity: Entity, others: Sequence[Entity], is_predicted: bool, is_seen: bool
    ) -> tuple[str, Entity | None]:
        """Counts an entity; returns its outcome, and the one of the `others` that decides it."""
        found, other = outcome(entity, others)
        found = MADE_UP if is_predicted and found == MISSED else found
        is_found = found == FOUND
        self._outcomes[found][is_predicted] += 1
        self._novelty.add(SEEN if is_seen else UNSEEN, is_predicted, is_found)
        self._lengths.add(length_group(entity), is_predicted, is_found)
        return found, other

    def values(self, scored_types: Iterable[str]) -> dict[str, Any]:
        """The counts as JSON: `outcomes`, `types`, `confusion`, `by_length` and `by_seen`."""
        pairs = (name for pair in self._confused for name in pair)
        types = sorted({*scored_types, *pairs} - {NO_ENTITY})
        every = (*types, NO_ENTITY)
        return {
            "outcomes": self._outcomes,
            "types": types,
            "confusion": [[self._confused[a, b] for b in every] for a in every],
            "by_length": self._lengths.rows(),
            "by_seen": self._novelty.rows(),
        }


def length_group(entity: Entity) -> str:
    """The group of an entity by its number of words."""
    length = entity[2] - entity[1]
    return str(length) if length <= LONGEST_OWN_GROUP else f"{LONGEST_OWN_GROUP + 1} or more"


def rates(gold: int, predicted: int, found: int) -> dict[str, float]:
    """Precision, recall and F1, 0 to 1; 0 where they are not defined."""
    values = {
        "precision": found / predicted if predicted else 0.0,
        "recall": found / gold if gold else 0.0,
        "f1": 2 * found / (gold + predicted) if gold + predicted else 0.0,
    }
    return {name: round(value, 6) for name, value in values.items()}
