"""Counts of scored rows: of a part, and of all."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.beam.scorer import Answer
from adapter_bert_tf.data.tables.rows import cell_text
from adapter_bert_tf.predict.inputs import encodable
from adapter_bert_tf.tasks.task import BETWEEN_LABELS

MOST_LABELS = 1000  # That are counted, each with its name.
# Types of the columns that are added to a row; all others are numbers.
TEXTS = {"label", "labels", "answer", "entities", "words", "tags", "probabilities", "source_file"}
COUNTS = {"start", "end", "source_row"}


def type_of_column(name: str) -> type:
    """The type of a column of an answer, or of the key of a row."""
    plain = name.replace("predicted_", "")
    if plain in TEXTS:
        return str
    return int if plain in COUNTS else float


def as_text(value: Any) -> str:
    """A value as text; lists and objects of answers as JSON."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    text: str = encodable((cell_text(value),))[0]
    return text


def labels_of(answered: Answer) -> list[str]:
    """The labels of an answer: its class or classes, the types of its entities, or its tags."""
    cells = answered.cells or {}
    if "entities" in cells:
        return [entity["type"] for entity in cells["entities"]]
    if "tags" in cells:
        return list(cells["tags"])
    if cells.get("labels"):
        return str(cells["labels"]).split(BETWEEN_LABELS)
    return [cells["label"]] if cells.get("label") is not None else []


def score_of(answered: Answer) -> float | None:
    """The score of an answer, or the probability of its best label or text; None for others."""
    cells = answered.cells or {}
    for name in ("score", "probability"):
        if isinstance(cells.get(name), float):
            return cells[name]
    probabilities = [v for k, v in cells.items() if k.startswith("probability_")]
    return max(probabilities, default=None)


@dataclasses.dataclass
class Totals:
    """Counts of rows, labels and word pieces; and the range and sum of scores."""

    parts: int = 0
    rows: int = 0
    bad_rows: int = 0
    cut_rows: int = 0  # Longer than their adapter reads.
    word_pieces: int = 0
    labels: dict[str, int] = dataclasses.field(default_factory=dict)
    scored: int = 0  # Answers that have a score or a probability.
    score_sum: float = 0.0
    score_min: float | None = None
    score_max: float | None = None

    def add(self, answered: Answer) -> None:
        """Counts a row."""
        self.rows += 1
        if answered.cells is None:
            self.bad_rows += 1
            return
        self.word_pieces += answered.pieces
        for label in labels_of(answered):
            self._add_label(label, 1)
        score = score_of(answered)
        if score is not None:
            self._add_scores(1, score, score, score)

    def merge(self, other: Totals) -> None:
        """Adds the counts of other rows."""
        for name in ("parts", "rows", "bad_rows", "cut_rows", "word_pieces"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for label, count in other.labels.items():
            self._add_label(label, count)
        if other.score_min is not None and other.score_max is not None:
            self._add_scores(other.scored, other.score_sum, other.score_min, other.score_max)

    def _add_label(self, label: str, count: int) -> None:
        if label in self.labels or len(self.labels) < MOST_LABELS:
            self.labels[label] = self.labels.get(label, 0) + count

    def _add_scores(self, count: int, total: float, least: float, most: float) -> None:
        self.scored += count
        self.score_sum += total
        self.score_min = least if self.score_min is None else min(self.score_min, least)
        self.score_max = most if self.score_max is None else max(self.score_max, most)

    def as_json(self) -> dict[str, Any]:
        """The counts as values of JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Totals:
        """The counts of `as_json`, among other values."""
        return cls(**{f.name: values[f.name] for f in dataclasses.fields(cls) if f.name in values})
