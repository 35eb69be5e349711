"""Scores of tags: entities by seqeval, whose default counts what conlleval.pl counts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

PLAIN = "plain"  # The scheme of tags that are not parts of entities.
Tags = Sequence[Sequence[str]]  # Of each sentence, in IOB2 or plain.


def evaluate(gold: Tags, predicted: Tags, scheme: str) -> dict[str, float]:
    """Returns the scores of predicted tags, 0 to 1; where nothing can be found they are 0.

    Returns:
      of entities: `f1`, `precision`, `recall`; `strict_f1`, for which an entity must also begin
      with B; `accuracy` of all words. Of plain tags: `accuracy` and `macro_f1`.
    """
    gold, predicted = _lists(gold), _lists(predicted)
    if scheme == PLAIN:
        return _plain_scores(gold, predicted)
    seqeval, schemes = _seqeval()
    scores = {
        name: float(getattr(seqeval, f"{name}_score")(gold, predicted, zero_division=0))
        for name in ("f1", "precision", "recall")
    }
    # Either of the two arguments alone would silently be the default.
    strict = seqeval.f1_score(gold, predicted, mode="strict", scheme=schemes.IOB2, zero_division=0)
    accuracy = float(seqeval.accuracy_score(gold, predicted)) if any(gold) else 0.0
    return scores | {"strict_f1": float(strict), "accuracy": accuracy}


def strict_entities(tags: Tags) -> list[list[tuple[Any, ...]]]:
    """Returns the entities of each sentence that begin with B, as `strict_f1` counts them."""
    _, schemes = _seqeval()
    found = schemes.Entities(_lists(tags), schemes.IOB2).entities
    return [[entity.to_tuple() for entity in sentence] for sentence in found]


def by_type(gold: Tags, predicted: Tags) -> dict[str, tuple[float, float, float, int]]:
    """Returns (precision, recall, F1, gold entities) of each type."""
    gold, predicted = _lists(gold), _lists(predicted)
    _seqeval()
    from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

    names = sorted({kind for kind, _, _ in get_entities(gold) + get_entities(predicted)})
    columns = precision_recall_fscore_support(gold, predicted, zero_division=0)
    return {
        name: (float(p), float(r), float(f), int(n))
        for name, p, r, f, n in zip(names, *columns, strict=True)
    }


def _plain_scores(gold: list[list[str]], predicted: list[list[str]]) -> dict[str, float]:
    from sklearn import metrics

    flat_gold, flat_predicted = _flat(gold), _flat(predicted)
    macro = metrics.f1_score(flat_gold, flat_predicted, average="macro", zero_division=0)
    accuracy = metrics.accuracy_score(flat_gold, flat_predicted)
    return {"accuracy": float(accuracy), "macro_f1": float(macro)}


def _seqeval() -> tuple[Any, Any]:
    """seqeval's metrics and schemes; importing them imports scikit-learn, half a second."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from seqeval import metrics, scheme
    return metrics, scheme


def _lists(tags: Tags) -> list[list[str]]:
    return [list(sentence) for sentence in tags]


def _flat(tags: list[list[str]]) -> list[str]:
    return [tag for sentence in tags for tag in sentence]
