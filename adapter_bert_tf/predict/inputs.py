"""Texts that a `Predictor` is given: as rows, and how many of them are cut."""

import collections
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from absl import logging

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

Row: TypeAlias = Sequence[Any]  # A tuple of one text or two; a list as the user gave it.


def rows_of(texts: Any, others: Any) -> list[Row]:
    """Rows of what a call is given: a list of texts or pairs, and the second texts."""
    texts, others = listed(texts), listed(others)
    if not isinstance(texts, list | tuple):
        raise InputError(f"texts are a text, a list, or a DataFrame. Received: {preview(texts)}")
    if others is None:
        rows = map(listed, texts)
        return [list(text) if isinstance(text, list | tuple) else (text,) for text in rows]
    if not isinstance(others, list | tuple) or len(others) != len(texts):
        raise InputError(
            f"others must have one text for each text. Received: {len(texts)} texts and "
            f"{preview(others)}"
        )
    return list(zip(texts, others, strict=True))


def listed(values: Any) -> Any:
    """A list of an array or of a pandas Series; anything else as it is."""
    return values.tolist() if hasattr(values, "tolist") else values


def encodable(row: Row) -> tuple[Any, ...]:
    """Texts, or tuples of texts, without lone surrogates, which TensorFlow takes for no text."""
    return tuple(
        text.encode("utf-8", "replace").decode() if isinstance(text, str) else encodable(text)
        for text in row
    )


class CutRows:
    """Counts the rows that are longer than their adapters read."""

    def __init__(self) -> None:
        self.rows = 0
        self.cut = collections.Counter[str]()

    def add(self, are_cut: np.ndarray, limit: str) -> None:
        """Adds rows, bool `[rows]`; `limit` names the setting that cuts them, and its value."""
        self.rows += len(are_cut)
        self.cut[limit] += int(are_cut.sum())

    def merge(self, other: "CutRows") -> None:
        """Adds the rows that another one has counted."""
        self.rows += other.rows
        self.cut += other.cut

    def warn(self, source: str = "") -> None:
        """Warns once of all rows that are cut."""
        if count := self.cut.total():
            limits = " or ".join(sorted(+self.cut))
            logging.warning(
                f"{source}{count:,} of {self.rows:,} rows ({count / self.rows:.1%}) are longer "
                f"than the adapter reads, in word pieces, and cut ({limits})."
            )
