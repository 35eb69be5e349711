"""Rows of a table of any size that are drawn for its development set."""

from __future__ import annotations

import hashlib
import heapq
from typing import TypeAlias

from adapter_bert_tf.data.examples import Examples

MOST = 10_000  # Rows, which are in memory.
Row: TypeAlias = tuple[str, str | None, str | None, tuple[str, int]]  # Texts, label, place.


class DevRows:
    """Draws a share of the rows by a hash of a seed and their texts, at most `most`.

    Equal texts stay together. Of more rows than `most`, those with the lowest hashes are taken, so
    that the draw does not depend on the order of the rows.

    Args:
      share: of the rows, 0 to 1.
      seed: of the draw.
      most: rows.
    """

    def __init__(self, share: float, seed: int, most: int = MOST) -> None:
        self._limit, self._most = int(share * 2**64), most
        self._key = seed.to_bytes(8, "little")
        self._rows: dict[int, list[Row]] = {}  # By hash.
        self._hashes: list[int] = []  # A heap of their negatives.
        self._count = 0

    def divide(self, rows: list[Row]) -> list[Row]:
        """Returns the rows to train on: those that are not drawn, and those given back."""
        train = []
        for row in rows:
            number = self._hash(row)
            if number >= self._limit:
                train.append(row)
                continue
            if number not in self._rows:
                heapq.heappush(self._hashes, -number)
            self._rows.setdefault(number, []).append(row)
            self._count += 1
            while self._count > self._most:
                self._limit = -heapq.heappop(self._hashes)
                back = self._rows.pop(self._limit)
                self._count -= len(back)
                train += back
        return train

    def drawn(self) -> list[Row]:
        """The rows that are drawn, in the order of their hashes."""
        return [row for _, rows in sorted(self._rows.items()) for row in rows]

    def _hash(self, row: Row) -> int:
        texts = repr(row[:2]).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(texts, digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "little")


def rows_of(part: Examples) -> list[Row]:
    """The examples as rows."""
    none: list[str | None] = [None] * len(part)
    seconds, labels = part.text_b or none, part.labels or none
    return list(zip(part.text_a, seconds, labels, part.places, strict=True))


def examples_of(rows: list[Row], has_second: bool) -> Examples:
    """Rows as examples; those without a second text have one column."""
    text_a, text_b, labels, places = ([row[i] for row in rows] for i in range(4))
    names = [str(number) for number in range(len(rows))]
    return Examples(text_a, text_b if has_second else None, labels, names, places)  # type: ignore[arg-type]
