"""Rows of a Parquet file from any row on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from adapter_bert_tf.beam.text_rows import Layout, Place
from adapter_bert_tf.data.tables.rows import Row, parquet_row
from adapter_bert_tf.data.tables.stream import AT_ONCE, import_pyarrow
from adapter_bert_tf.errors import Damaged
from adapter_bert_tf.sanitize import truncate


class ParquetRows:
    """As `TextRows`; places are numbers of rows, and lines too, from 1."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path, self._pyarrow = path, import_pyarrow()
        with self._damage():
            self._file = self._pyarrow.parquet.ParquetFile(file)

    @contextlib.contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except (self._pyarrow.ArrowException, OSError) as error:
            reason = truncate(str(error), 200)
            raise Damaged(f"{self._path} is damaged, no Parquet file: {reason}") from error

    def layout(self) -> Layout:
        """The names and types of the columns."""
        schema = self._file.schema_arrow.remove_metadata()
        return Layout(tuple(schema.names), Place(), schema=schema)

    def read(self, layout: Layout, place: Place) -> Iterator[tuple[Place, Row]]:
        """Yields the place and the row of each row from a place on."""
        number, wanted = 0, place.offset
        for group in range(self._file.num_row_groups):
            size = self._file.metadata.row_group(group).num_rows
            if number + size <= wanted:
                number += size
                continue
            batches = self._file.iter_batches(AT_ONCE, row_groups=[group])
            while (batch := self._next(batches)) is not None:
                before = min(max(wanted - number, 0), len(batch))
                number += before
                for values in batch.slice(before).to_pylist():
                    yield Place(number, number + 1), parquet_row(number + 1, values)
                    number += 1

    def _next(self, batches: Iterator[Any]) -> Any:
        with self._damage():
            return next(batches, None)
