"""Tokenized rows of a table in files on the local disk, read by their numbers."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.on_disk.cache import Cache, announce_rows, digest_of, read_rows
from adapter_bert_tf.sanitize import parse_json

FORMAT = 1  # Version of the files; those of another version are written again.
DONE_FILE = "rows.json"
IDS, INDEX = "ids", "index"  # Endings of the files.
FILES = re.compile(rf"[0-9a-f]{{8}}\.({IDS}|{INDEX})")
# Of a row: where its ids begin in bytes; the number of its label cell, or the bits of its score;
# its word pieces, and how many of them have type 0.
ENTRY = np.dtype([("offset", "<u8"), ("label", "<i4"), ("length", "<u2"), ("first", "<u2")])


@dataclasses.dataclass(frozen=True)
class Scores:
    """Number, mean, sum of squared differences from it, and range of scores."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    lowest: float = float("inf")
    highest: float = float("-inf")

    def with_more(self, scores: np.ndarray) -> Scores:
        """The same with more scores, float32 (Chan et al. 1979)."""
        if not len(scores):
            return self
        exact = scores.astype(np.float64)
        mean, count = float(exact.mean()), self.count + len(exact)
        difference = mean - self.mean
        return Scores(
            count,
            self.mean + difference * len(exact) / count,
            self.squares
            + float(np.square(exact - mean).sum())
            + difference**2 * self.count * len(exact) / count,
            min(self.lowest, float(exact.min())),
            max(self.highest, float(exact.max())),
        )

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return float((self.squares / max(self.count, 1)) ** 0.5)


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a pass over the rows found.

    Args:
      count: number of rows.
      pieces, longest: word pieces of all rows, and of the longest.
      cut: number of rows that were longer.
      unknown: number of word pieces that are [UNK].
      sha256: of texts and labels, in the order of the rows.
      labels: different cells of labels, in the order of their numbers; none for scores.
      label_counts: rows with each.
      label_places: path and line of the first row with each.
      scores: of all rows; None for labels.
      warnings: sentences about the rows.
      dev: columns of the examples that were drawn for the dev set: those of `Examples`, or None.
    """

    count: int
    pieces: int
    longest: int
    cut: int
    unknown: int
    sha256: str
    labels: list[str]
    label_counts: list[int]
    label_places: list[tuple[str, int]]
    scores: Scores | None
    warnings: list[str]
    dev: list[Any] | None

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Facts:
        """The facts that `to_json` has converted. Raises `ValueError` or `TypeError`."""
        scores, dev = values["scores"], values["dev"]
        places = [(str(path), int(line)) for path, line in values["label_places"]]
        facts = cls(**{**values, "scores": scores and Scores(**scores), "label_places": places})
        numbers = (facts.count, facts.pieces, facts.longest, facts.cut, facts.unknown)
        if any(type(number) is not int or number < 0 for number in numbers) or not facts.count:
            raise ValueError("A count is a whole number.")
        if dev is not None:
            facts.dev_examples()
        return facts

    def to_json(self) -> dict[str, Any]:
        """The facts as JSON values."""
        return dataclasses.asdict(self)

    def dev_examples(self) -> Examples | None:
        """The examples that were drawn for the dev set."""
        if self.dev is None:
            return None
        text_a, text_b, labels, indices, places = self.dev
        return Examples(text_a, text_b, labels, indices, [(path, line) for path, line in places])

    def label_examples(self) -> Examples:
        """One example without text for each label cell, or for the lowest and the highest score."""
        if self.scores is None:
            cells, places = self.labels, self.label_places
        else:
            cells = [repr(self.scores.lowest), repr(self.scores.highest)]
            places = [("", 0)] * 2
        texts = [""] * len(cells)
        return Examples(texts, None, list(cells), list(texts), list(places))


@dataclasses.dataclass(frozen=True)
class StoredTable:
    """Tokenized rows of a table on the local disk.

    Args:
      ids_path: of the word ids of all rows, one after the other.
      index_path: of an `ENTRY` for each row.
      dtype: of an id.
      facts: about all rows.
    """

    ids_path: str
    index_path: str
    dtype: str
    facts: Facts

    def __len__(self) -> int:
        return self.facts.count

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return self.ids_path, self.index_path

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(os.path.getsize(path) for path in self.paths)

    def entries(self, rows: np.ndarray) -> np.ndarray:
        """`ENTRY` `[rows]` of rows by their numbers. Raises `InputError`."""
        size = ENTRY.itemsize
        content = read_rows(self.index_path, (rows * size).tolist(), [size] * len(rows))
        return np.frombuffer(content, ENTRY)

    def announce(self, rows: np.ndarray) -> np.ndarray:
        """As `entries`, of rows whose `inputs` are read soon. Raises `InputError`."""
        size = ENTRY.itemsize
        announce_rows(self.index_path, (rows * size).tolist(), [size] * len(rows))
        entries = self.entries(rows)
        sizes = entries["length"].astype(np.int64) * np.dtype(self.dtype).itemsize
        announce_rows(self.ids_path, entries["offset"].tolist(), sizes.tolist())
        return entries

    def inputs(self, entries: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Word ids, type ids and mask of rows, int32 `[rows, width]` each. Raises `InputError`."""
        lengths, size = entries["length"].astype(np.int64), np.dtype(self.dtype).itemsize
        sizes = (lengths * size).tolist()
        content = read_rows(self.ids_path, entries["offset"].tolist(), sizes)
        positions = np.arange(width)
        mask = positions < lengths[:, np.newaxis]
        ids = np.zeros((len(entries), width), np.int32)
        ids[mask] = np.frombuffer(content, self.dtype)
        types = mask & (positions >= entries["first"].astype(np.int64)[:, np.newaxis])
        return ids, types.astype(np.int32), mask.astype(np.int32)


def cached_table(
    folder: str,
    key: Mapping[str, Any],
    vocabulary_size: int,
    write: Callable[[str, str], StoredTable],
) -> StoredTable:
    """The rows for `key`, in a folder of caches; writes them if they are missing or damaged.

    Args:
      folder: of caches; a remote one stands for this machine's own cache.
      key: all values that determine the rows.
      vocabulary_size: decides the width of an id.
      write: function of a folder and the type of an id.

    Raises:
      InputError: if they cannot be written.
    """
    dtype = "<u2" if vocabulary_size <= 1 << 16 else "<i4"

    def read(path: str) -> StoredTable | None:
        return _read_done(path, dtype)

    cache = Cache(folder, "rows", "rows", DONE_FILE, FILES, read)
    return cache.get({**key, "format": FORMAT}, lambda path: write(path, dtype))


def write_done(folder: str, table: StoredTable, digests: Mapping[str, str]) -> None:
    """Writes the file that makes the others valid; `digests` are theirs by path."""
    files = {os.path.basename(path): digest for path, digest in digests.items()}
    values = {"files": files, "facts": table.facts.to_json()}
    storage.write_text(os.path.join(folder, DONE_FILE), json.dumps(values))


def _read_done(folder: str, dtype: str) -> StoredTable | None:
    """The complete rows in a folder; None for missing or damaged ones."""
    done = os.path.join(folder, DONE_FILE)
    if not os.path.isfile(done):
        return None
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OSError):
        values = parse_json(storage.read_bytes(done))
        files = {os.path.join(folder, os.path.basename(n)): d for n, d in values["files"].items()}
        paths = {path.rpartition(".")[2]: path for path in files}
        table = StoredTable(paths[IDS], paths[INDEX], dtype, Facts.from_json(values["facts"]))
        whole = len(table) * ENTRY.itemsize == os.path.getsize(table.index_path)
        if whole and all(digest_of(path) == digest for path, digest in files.items()):
            return table
    return None
