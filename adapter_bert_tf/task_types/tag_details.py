"""Details of tagged sentences: entities by outcome, confusions of types, and the surest errors."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from adapter_bert_tf.data.tagging.schemes import PLAIN, entities
from adapter_bert_tf.sanitize import truncate
from adapter_bert_tf.task_types.details import LONGEST_LABEL, MOST_ERRORS, calibration, rounded
from adapter_bert_tf.tasks import entity_errors, tag_metrics
from adapter_bert_tf.tasks.entity_errors import FOUND, MISSED, SEEN, UNSEEN, Entity, rates

WRONG_TAG = "wrong tag"
MOST_WORDS = 60  # Of a sentence that is shown.
MOST_MISSED = 10
SAMPLE = 10  # Sentences that are shown whether they are right or not.

Tags: TypeAlias = Sequence[str]


@dataclasses.dataclass(frozen=True)
class Error:
    """An error of a sentence.

    Args:
      outcome: one of `OUTCOMES` except "found", or `WRONG_TAG`.
      entity: the predicted entity, or the expected one that is missed.
      expected: the type that is expected there; "" for none.
      predicted: the type that is predicted there; "" for none.
      probability: that the model gave to its wrong answer.
    """

    outcome: str
    entity: Entity
    expected: str
    predicted: str
    probability: float


def seen_texts(words: Iterable[Sequence[str]], tags: Iterable[Tags], scheme: str) -> set[str]:
    """The texts of the entities of training sentences; of plain tags all words."""
    if scheme == PLAIN:
        return {word for sentence in words for word in sentence}
    pairs = zip(words, tags, strict=True)
    return {_text(sentence, entity) for sentence, row in pairs for entity in entities(row)}


def tag_details(
    words: Sequence[Sequence[str]],
    gold: Sequence[Tags],
    predicted: Sequence[Tags],
    probabilities: Sequence[Sequence[float | None]],
    argmax: Sequence[Tags],
    seen: Collection[str],
    scheme: str,
    lines: Sequence[int] | None = None,
) -> dict[str, Any]:
    """The details of evaluated sentences, for `eval_details.json`.

    Args:
      words: of each sentence.
      gold: expected tags, IOB2 or plain.
      predicted: predicted tags.
      probabilities: softmax probability of the predicted tag of each word; None of words without
        pieces, which no model reads: they are in no list of errors and in no calibration.
      argmax: the most probable tag of each word.
      seen: result of `seen_texts` for the training sentences.
      scheme: of the training files; `plain` for tags that are not entities.
      lines: line of each sentence in its file.
    """
    describe = _plain_details if scheme == PLAIN else _entity_details
    own, errors = describe(words, gold, predicted, probabilities, argmax, seen)

    def example(number: int, error: Error | None = None) -> dict[str, Any]:
        expected, given = gold[number], predicted[number]
        if scheme == PLAIN:
            marked = _wrong_words(expected, given), _wrong_words(given, expected)
        else:
            marked = entities(expected), entities(given)
        line = {} if lines is None else {"line": int(lines[number])}
        return line | _excerpt(words[number], *marked, error)

    tagged = [i for i, pair in enumerate(zip(gold, predicted, strict=True)) if _is_tagged(*pair)]
    return {
        "kind": "tags",
        "scheme": scheme,
        "examples": len(words),
        "words": sum(map(len, words)),
        **own,
        "changed": _changed(predicted, argmax),
        "errors": sum(map(len, errors)),
        "wrong_sentences": sum(map(bool, errors)),
        "shown": [example(*item) for item in _surest(errors, False)],
        "missed": [example(*item) for item in _surest(errors, True)],
        "sample": [example(tagged[i]) for i in _spread(len(tagged), SAMPLE)],
    }


def _surest(errors: Sequence[Sequence[Error]], is_missed: bool) -> list[tuple[int, Error]]:
    """The sentences with the surest errors, of entities that are missed or others; one of each."""
    by_sentence = {
        number: max(some, key=lambda error: error.probability)
        for number, found in enumerate(errors)
        if (some := [error for error in found if (error.outcome == MISSED) == is_missed])
    }
    order = sorted(by_sentence.items(), key=lambda item: -item[1].probability)
    return order[: MOST_MISSED if is_missed else MOST_ERRORS]


def _is_tagged(gold: Tags, predicted: Tags) -> bool:
    return any(tag != "O" for tag in (*gold, *predicted))


def _spread(count: int, most: int) -> list[int]:
    """At most `most` numbers below `count`, at equal distances."""
    return sorted({int(i) for i in np.linspace(0, count - 1, min(count, most))})


def _changed(predicted: Sequence[Tags], argmax: Sequence[Tags]) -> dict[str, int]:
    """How many tags and sentences decoding changed, compared with the most probable tags."""
    counts = [
        sum(a != b for a, b in zip(chosen, likely, strict=True))
        for chosen, likely in zip(predicted, argmax, strict=True)
    ]
    return {"words": sum(counts), "sentences": sum(map(bool, counts))}


def _excerpt(
    words: Sequence[str], gold: Sequence[Entity], predicted: Sequence[Entity], error: Error | None
) -> dict[str, Any]:
    """Words of a sentence around an error, with the entities among them."""
    middle = error.entity[1] if error else 0
    first = max(0, min(middle - MOST_WORDS // 2, len(words) - MOST_WORDS))
    last = min(len(words), first + MOST_WORDS)

    def inside(marked: Sequence[Entity]) -> list[list[Any]]:
        return [
            [kind, max(begin, first) - first, min(end, last) - first]
            for kind, begin, end in marked
            if begin < last and end > first
        ]

    shown = [truncate(word, LONGEST_LABEL) for word in words[first:last]]
    facts = {}
    if error:
        facts = dataclasses.asdict(error) | {"probability": rounded(error.probability)}
        facts["entity"] = truncate(_text(words, error.entity), LONGEST_LABEL)
    return facts | {
        "words": shown,
        "is_cut": [first > 0, last < len(words)],
        "gold": inside(gold),
        "given": inside(predicted),
    }


def _text(words: Sequence[str], entity: Entity) -> str:
    _, first, end = entity
    return " ".join(words[first:end])


# Entities.


def _entity_details(
    words: Sequence[Sequence[str]],
    gold: Sequence[Tags],
    predicted: Sequence[Tags],
    probabilities: Sequence[Sequence[float | None]],
    argmax: Sequence[Tags],
    seen: Collection[str],
) -> tuple[dict[str, Any], list[list[Error]]]:
    """The details of entities, and the errors of each sentence."""
    tally = entity_errors.EntityTally()
    errors: list[list[Error]] = []
    probability: list[float] = []
    is_right: list[bool] = []
    for number, sentence in enumerate(words):
        expected, given = entities(gold[number]), entities(predicted[number])
        tally.add_sentence(expected, given)
        errors.append([])
        for is_predicted, marked, others in ((False, expected, given), (True, given, expected)):
            for entity in marked:
                is_seen = _text(sentence, entity) in seen
                found, other = tally.add(entity, others, is_predicted, is_seen)
                lowest = _lowest(probabilities[number], entity)
                if lowest is None:
                    continue
                if is_predicted:
                    probability.append(lowest)
                    is_right.append(found == FOUND)
                if found == MISSED or (is_predicted and found != FOUND):
                    expected_type = (other[0] if other else "") if is_predicted else entity[0]
                    given_type = entity[0] if is_predicted else ""
                    errors[-1].append(Error(found, entity, expected_type, given_type, lowest))
    per_type = tag_metrics.by_type(gold, predicted)
    values = tally.values(per_type)
    details = values | {
        "per_type": [_metrics_row(name, per_type.get(name)) for name in values["types"]],
        "f1": _f1(gold, predicted),
        "argmax_f1": _f1(gold, argmax),
    }
    if probability:
        details["calibration"] = calibration(np.array(probability), np.array(is_right))
    return details, errors


def _lowest(probabilities: Sequence[float | None], entity: Entity) -> float | None:
    """The least probability of an entity's words; None if none of them has pieces."""
    _, first, end = entity
    return min((float(p) for p in probabilities[first:end] if p is not None), default=None)


def _f1(gold: Sequence[Tags], predicted: Sequence[Tags]) -> float:
    """F1 of the entities of all sentences, 0 to 1."""
    counts = np.zeros(3, int)
    for expected, given in zip(gold, predicted, strict=True):
        pair = set(entities(expected)), set(entities(given))
        counts += len(pair[0]), len(pair[1]), len(pair[0] & pair[1])
    return rates(*counts.tolist())["f1"]


def _metrics_row(name: str, values: Sequence[float] | None) -> dict[str, Any]:
    precision, recall, f1, support = values or (0.0, 0.0, 0.0, 0)
    rates = {"precision": precision, "recall": recall, "f1": f1}
    return {"type": name} | {key: rounded(x) for key, x in rates.items()} | {"gold": int(support)}


# Plain tags.


def _plain_details(
    words: Sequence[Sequence[str]],
    gold: Sequence[Tags],
    predicted: Sequence[Tags],
    probabilities: Sequence[Sequence[float | None]],
    argmax: Sequence[Tags],
    seen: Collection[str],
) -> tuple[dict[str, Any], list[list[Error]]]:
    """The details of plain tags, and the errors of each sentence."""
    confused: collections.Counter[tuple[str, str]] = collections.Counter()
    novelty = {SEEN: [0, 0], UNSEEN: [0, 0]}
    errors: list[list[Error]] = []
    for number, sentence in enumerate(words):
        errors.append([])
        rows = zip(sentence, gold[number], predicted[number], probabilities[number], strict=True)
        for place, (word, expected, given, sure) in enumerate(rows):
            confused[expected, given] += 1
            counts = novelty[SEEN if word in seen else UNSEEN]
            counts[0] += 1
            counts[1] += expected == given
            if expected != given and sure is not None:
                entity = (given, place, place + 1)
                errors[-1].append(Error(WRONG_TAG, entity, expected, given, float(sure)))
    tags = sorted({name for pair in confused for name in pair})
    table = np.array([[confused[a, b] for b in tags] for a in tags]).reshape(len(tags), len(tags))
    sides = zip(tags, table.sum(1).tolist(), table.sum(0).tolist(), strict=True)
    columns = map(itertools.chain.from_iterable, (probabilities, gold, predicted))
    answered = [(sure, a == b) for sure, a, b in zip(*columns, strict=True) if sure is not None]
    details: dict[str, Any] = {
        "types": tags,
        "confusion": table.tolist(),
        "per_type": [
            {"type": tag, "gold": given} | rates(given, predicted_count, confused[tag, tag])
            for tag, given, predicted_count in sides
        ],
        "by_seen": [
            {"group": group, "gold": count, "found": right, "accuracy": rounded(right / count)}
            for group, (count, right) in novelty.items()
            if count
        ],
    }
    if answered:
        details["calibration"] = calibration(*map(np.array, zip(*answered, strict=True)))
    return details, errors


def _wrong_words(tags: Tags, others: Tags) -> list[Entity]:
    """The words whose tags differ, as entities."""
    pairs = enumerate(zip(tags, others, strict=True))
    return [(tag, i, i + 1) for i, (tag, other) in pairs if tag != other]
