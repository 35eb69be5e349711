"""One pass over the rows of a table: reads, checks, tokenizes and writes them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from adapter_bert_tf.data.batches import TOKENIZE_BATCH, batch_encoder
from adapter_bert_tf.data.examples import Examples, RowReader
from adapter_bert_tf.data.in_order import map_in_order
from adapter_bert_tf.data.labels import LabelCells
from adapter_bert_tf.data.on_disk.cache import DigestedFile, new_files
from adapter_bert_tf.data.on_disk.dev_rows import DevRows, Row, examples_of, rows_of
from adapter_bert_tf.data.on_disk.stored_table import (
    ENTRY,
    IDS,
    INDEX,
    Facts,
    Scores,
    StoredTable,
    write_done,
)
from adapter_bert_tf.data.tables.blocks import read_blocks
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.tasks.task import Source, Task

MOST_LABELS = 1 << 20  # Different label cells, which are in memory.


@dataclasses.dataclass(frozen=True)
class TablePass:
    """What is read, and how.

    Args:
      task, source, folder: which rows.
      cells: how label cells are read.
      scores: function of examples that returns their scores, float32; None for labels.
      encoder: `TextEncoder`.
      dev: draws the development set; None if there is another, or none.
      progress: function of a number of rows and the share of all bytes that is read.
    """

    task: Task
    source: Source
    folder: str
    cells: LabelCells
    scores: Callable[[Examples], np.ndarray] | None
    encoder: Any
    dev: DevRows | None
    progress: Callable[[int, float], None]

    def write(self, folder: str, dtype: str) -> StoredTable:
        """Writes the rows to new files in a folder. Raises `InputError` for wrong rows."""
        reader = RowReader(self.task, self.source, self.folder, self.cells)
        with new_files(folder, IDS, INDEX) as ((ids_path, ids), (index_path, index)):
            totals = _Totals(ids, index, dtype, self.encoder.unknown_id, self.scores)
            parts = _divided(self._parts(reader), self.dev)
            for part, encoded in map_in_order(self._encode, parts):
                totals.add(part, *encoded)
            has_second = self.source.columns.text_b is not None
            drawn = examples_of(self.dev.drawn(), has_second) if self.dev else None
            self._require_rows(totals.count, drawn)
            warnings = [*reader.findings.sentences(), *totals.warnings()]
            facts = totals.facts(warnings, drawn)
        table = StoredTable(ids_path, index_path, dtype, facts)
        write_done(folder, table, {ids_path: ids.sha256(), index_path: index.sha256()})
        return table

    def _parts(self, reader: RowReader) -> Iterator[Examples]:
        for header, rows, share in read_blocks(self.source, self.folder, reader.findings):
            yield reader.examples(header, rows)
            self.progress(len(rows), share)

    def _encode(self, part: Examples) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Word ids of all rows; for each row their number, and that of type 0; how many are cut."""
        columns = [part.text_a] + ([] if part.text_b is None else [part.text_b])
        encode = batch_encoder(self.encoder, len(columns)).function(1)
        ids, types, full = encode(*map(tf.constant, columns))
        splits = ids.row_splits.numpy()
        seconds = np.add.reduceat(types.flat_values.numpy(), splits[:-1])
        lengths = np.diff(splits)
        cut = int((full.numpy() > lengths).sum())
        return ids.flat_values.numpy(), lengths, lengths - seconds, cut

    def _require_rows(self, count: int, drawn: Examples | None) -> None:
        where = self.source.location(self.folder)
        if drawn is not None and not (count and len(drawn)):
            raise InputError(
                f"{where}: {count + len(drawn)} examples are too few to split into train, dev. "
                "Give a dev file."
            )
        if not count:
            raise InputError(f"{where} has no examples.")


def _divided(parts: Iterable[Examples], dev: DevRows | None) -> Iterator[Examples]:
    """Yields the examples to train on, at least one and at most `TOKENIZE_BATCH` at a time."""
    for part in parts:
        rows: list[Row] = rows_of(part)
        rows = dev.divide(rows) if dev else rows
        for start in range(0, len(rows), TOKENIZE_BATCH):
            some = rows[start : start + TOKENIZE_BATCH]
            yield examples_of(some, part.text_b is not None)


class _Totals:
    """Writes rows, and counts what they are."""

    def __init__(
        self,
        ids: DigestedFile,
        index: DigestedFile,
        dtype: str,
        unknown_id: int,
        scores: Callable[[Examples], np.ndarray] | None,
    ) -> None:
        self._ids, self._index, self._dtype, self._unknown_id = ids, index, dtype, unknown_id
        self._score, self._scores = scores, Scores() if scores else None
        self.count = self._pieces = self._longest = self._cut = self._unknown = 0
        self._digest = hashlib.sha256()
        self._numbers: dict[str, int] = {}  # Of label cells.
        self._counts: list[int] = []
        self._places: list[tuple[str, int]] = []
        self._empty, self._first_empty = 0, ("", 0)

    def add(
        self, part: Examples, ids: np.ndarray, lengths: np.ndarray, firsts: np.ndarray, cut: int
    ) -> None:
        """Writes and counts encoded examples."""
        entries = np.zeros(len(part), ENTRY)
        ends = np.cumsum(lengths) * np.dtype(self._dtype).itemsize
        entries["offset"] = self._ids.size + np.concatenate([[0], ends[:-1]])
        entries["label"] = self._labels(part)
        entries["length"], entries["first"] = lengths, firsts
        self._ids.write(ids.astype(self._dtype).data)
        self._index.write(entries.tobytes())
        self.count += len(part)
        self._pieces += len(ids)
        self._longest = max(self._longest, int(lengths.max()))
        self._cut += cut
        self._unknown += int(np.count_nonzero(ids == self._unknown_id))
        for *row, place in rows_of(part):
            self._digest.update(repr(row).encode("utf-8", "surrogatepass"))
            if not all(text.strip() for text in row[:2] if text is not None):
                self._first_empty = self._first_empty if self._empty else place
                self._empty += 1

    def _labels(self, part: Examples) -> np.ndarray:
        """The numbers of label cells, int32, or the bits of scores."""
        if self._score:
            scores = self._score(part)
            assert self._scores is not None
            self._scores = self._scores.with_more(scores)
            return scores.astype("<f4").view("<i4")
        numbers = []
        for cell, place in zip(part.labels or (), part.places, strict=True):
            number = self._numbers.setdefault(str(cell), len(self._counts))
            if number == len(self._counts):
                self._counts.append(0)
                self._places.append(place)
            self._counts[number] += 1
            numbers.append(number)
        if len(self._counts) > MOST_LABELS:
            raise InputError(
                f"{part.places[-1][0]}: there are more than {MOST_LABELS:,} different labels. Is "
                "label_column right, or is the label a score (regression=True)?",
                "label_column",
                "regression=True",
            )
        return np.array(numbers, np.int32)

    def warnings(self) -> Iterator[str]:
        """Yields the sentence about empty texts, if there are any."""
        if self._empty:
            path, line = self._first_empty
            yield (
                f"{self._empty} of {self.count} examples of train have an empty text; the first is "
                f"in {path}, line {line}."
            )

    def facts(self, warnings: list[str], drawn: Examples | None) -> Facts:
        """All that was counted."""
        return Facts(
            self.count,
            self._pieces,
            self._longest,
            self._cut,
            self._unknown,
            self._digest.hexdigest(),
            list(self._numbers),
            self._counts,
            self._places,
            self._scores,
            warnings,
            None if drawn is None else drawn.columns(),
        )
