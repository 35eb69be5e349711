"""Output of a part: a shard of scored rows, its bad rows, and a record that it is whole."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.beam.rows import InputFile, Part, output_stem
from adapter_bert_tf.beam.scorer import Answer
from adapter_bert_tf.beam.text_rows import TEXT
from adapter_bert_tf.beam.totals import Totals, as_text, type_of_column
from adapter_bert_tf.data.tables.rows import Row, column_keys
from adapter_bert_tf.data.tables.stream import TableFormat, import_pyarrow, output_format
from adapter_bert_tf.output.atomic import replace_file
from adapter_bert_tf.output.records import read_record, write_record
from adapter_bert_tf.predict.writing import Writer, open_writer, surplus_keys, unused_names
from adapter_bert_tf.sanitize import format_json

# Beam, Spark and others read no file whose name, or folder, begins with an underscore.
PARTS, BAD_ROWS = "_parts", "_bad_rows"
SIZE = "size.json"  # The record of a file, in the folder of those of its parts.
KEY_NAMES = ("source_file", "source_row")  # The row's file, and its number there, from 0.
PARQUET, OBJECTS = ".parquet", ".jsonl"
ENDINGS = (".csv", ".tsv", OBJECTS, PARQUET, ".csv.gz", ".tsv.gz", ".jsonl.gz")


@dataclasses.dataclass(frozen=True)
class Head:
    """What a writer knows of a table."""

    names: Sequence[str] | None
    width: int
    format: TableFormat


@dataclasses.dataclass(frozen=True)
class Shards:
    """The output folder of a job.

    Args:
      folder: local or remote.
      ending: of the shards; None: as the file that is scored, `.jsonl` for `.txt`.
    """

    folder: str
    ending: str | None

    def ending_of(self, name: str) -> str:
        """The ending of the shards of a file."""
        if self.ending is not None:
            return self.ending
        own = name[len(output_stem(name)) :].lower()
        return own.replace(TEXT, OBJECTS)

    def path(self, part: Part) -> str:
        """The shard of a part: `FOLDER/NAME-00000.csv`."""
        name = part.file.name
        return os.path.join(self.folder, f"{_stem(part)}{self.ending_of(name)}")

    def record_path(self, part: Part) -> str:
        """The record of a whole part."""
        name = output_stem(part.file.name)
        return os.path.join(self.folder, PARTS, name, f"{part.number:05d}.json")

    def file_record_path(self, file: InputFile) -> str:
        """The record of the size of a file, in rows and parts."""
        return os.path.join(self.folder, PARTS, output_stem(file.name), SIZE)

    def bad_path(self, part: Part) -> str:
        """The bad rows of a part."""
        return os.path.join(self.folder, BAD_ROWS, f"{_stem(part)}.jsonl")

    def record(self, part: Part) -> dict[str, Any] | None:
        """The record of a part; None if it is not whole."""
        return read_record(self.record_path(part))

    def write_record(self, part: Part, totals: Totals, run: str) -> None:
        """Records that a part is whole: the last that is written of it."""
        write_record(self.record_path(part), {"run": run, **totals.as_json()})

    def write(
        self,
        part: Part,
        rows: Sequence[Row],
        answered: Sequence[Answer],
        names: Mapping[str, str],
        key_names: Sequence[str],
    ) -> Totals:
        """Writes the shard and the bad rows of a part, each whole or not at all.

        Args:
          part: which.
          rows: its rows.
          answered: their answers.
          names: dict from a column of the answers to its name in the shard.
          key_names: of the two columns of a row's key.
        """
        totals, bad = Totals(parts=1), list[dict[str, Any]]()
        new_names = [*key_names, *names.values()]
        with (
            replace_file(self.path(part), overwrite=True) as place,
            self._writer(place, part, new_names) as writer,
        ):
            for number, (row, answer) in enumerate(zip(rows, answered, strict=True), part.first):
                key = part.file.name, number
                error = answer.error
                if answer.cells is not None and (error := writer.problem(row)) is None:
                    writer.write(row, [*key, *map(answer.cells.get, names)])
                totals.add(answer if error is None else dataclasses.replace(answer, cells=None))
                if error is not None:
                    named = dict(zip(KEY_NAMES, key, strict=True))
                    bad.append({**named, "line": row.line, "reason": error, "row": row.values})
        if bad or storage.exists(self.bad_path(part)):
            lines = (format_json(row, ascii_only=True) + "\n" for row in bad)
            storage.write_text(self.bad_path(part), "".join(lines))
        return totals

    @contextlib.contextmanager
    def _writer(self, place: str, part: Part, new_names: Sequence[str]) -> Iterator[Writer]:
        path = self.path(part)
        if path.endswith(PARQUET):
            parquet = _ParquetWriter(part, new_names)
            yield parquet
            parquet.save(place)
            return
        header = part.form.header or part.form.extension == TEXT
        form = output_format(path, part.form, header)
        head = Head(part.layout.names, part.layout.width, part.form)
        with open_writer(place, form, head, new_names) as writer:
            yield writer


def key_names(names: Sequence[str] | None) -> list[str]:
    """The names of a row's key, in a table with these columns."""
    return unused_names(KEY_NAMES, names or ())


def _stem(part: Part) -> str:
    return f"{output_stem(part.file.name)}-{part.number:05d}"


class _ParquetWriter:
    """Collects the rows of a part; columns of other formats become texts."""

    def __init__(self, part: Part, new_names: Sequence[str]) -> None:
        self._pyarrow, self._new_names = import_pyarrow(), new_names
        text = self._pyarrow.string()
        types = {str: text, int: self._pyarrow.int64(), float: self._pyarrow.float64()}
        own = dict.fromkeys(column_keys(part.layout.names, part.layout.width), text)
        if part.layout.schema is not None:
            own = {field.name: field.type for field in part.layout.schema}
        self._own = tuple(own)
        self._types = own | {name: types[type_of_column(name)] for name in new_names}
        self._columns: dict[str, list[Any]] = {name: [] for name in self._types}
        self._are_texts = {name for name, type in self._types.items() if type == text}

    def problem(self, row: Row) -> str | None:
        return surplus_keys(row, self._own)

    def write(self, row: Row, new: Sequence[Any]) -> None:
        values = row.values | dict(zip(self._new_names, new, strict=True))
        for name, column in self._columns.items():
            value = values.get(name)
            is_text = name in self._are_texts and value is not None
            column.append(as_text(value) if is_text else value)

    def save(self, place: str) -> None:
        """Writes all rows."""
        arrays = [self._pyarrow.array(self._columns[n], type) for n, type in self._types.items()]
        table = self._pyarrow.table(arrays, names=list(self._types))
        self._pyarrow.parquet.write_table(table, place)
