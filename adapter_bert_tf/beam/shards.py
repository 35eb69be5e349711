"""Output of a part: a shard of scored rows, its bad rows, and a record that it is whole."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.beam.rows import InputFile, Part, output_stem
from adapter_bert_tf.beam.scorer import Answer
from adapter_bert_tf.beam.text_rows import TEXT
from adapter_bert_tf.beam.totals import Totals, type_of_column
from adapter_bert_tf.data.tables.rows import Row, cell_text
from adapter_bert_tf.data.tables.stream import extension_of, import_pyarrow, table_format
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.atomic import replace_file
from adapter_bert_tf.output.records import read_record, write_record
from adapter_bert_tf.predict.inputs import encodable
from adapter_bert_tf.predict.writing import WriteRow, open_writer, unused_names
from adapter_bert_tf.sanitize import preview

# Beam, Spark and others read no file whose name, or folder, begins with an underscore.
PARTS, BAD_ROWS = "_parts", "_bad_rows"
SIZE = "size.json"  # The record of a file, in the folder of those of its parts.
KEY_NAMES = ("source_file", "source_row")  # The row's file, and its number there, from 0.
PARQUET, OBJECTS = ".parquet", ".jsonl"
ENDINGS = (".csv", ".tsv", OBJECTS, PARQUET, ".csv.gz", ".tsv.gz", ".jsonl.gz")


@dataclasses.dataclass(frozen=True)
class Head:
    """What a writer knows of a table: its path for messages, and the names of its columns."""

    path: str
    names: Sequence[str] | None


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
        with (
            replace_file(self.path(part), overwrite=True) as place,
            self._writer(place, part, list(names.values()), key_names) as write,
        ):
            for number, (row, answer) in enumerate(zip(rows, answered, strict=True), part.first):
                keys = dict(zip(key_names, (part.file.name, number), strict=True))
                error = answer.error
                if answer.cells is not None:
                    cells = [answer.cells.get(name) for name in names]
                    error = _try(write, Row(row.line, row.values | keys), cells)
                totals.add(answer if error is None else dataclasses.replace(answer, cells=None))
                if error is not None:
                    key = dict(zip(KEY_NAMES, keys.values(), strict=True))
                    bad.append({**key, "line": row.line, "reason": error, "row": row.values})
        if bad or storage.exists(self.bad_path(part)):
            lines = (json.dumps(row, ensure_ascii=True, default=str) + "\n" for row in bad)
            storage.write_text(self.bad_path(part), "".join(lines))
        return totals

    @contextlib.contextmanager
    def _writer(
        self, place: str, part: Part, names: Sequence[str], key_names: Sequence[str]
    ) -> Iterator[WriteRow]:
        own, path = part.layout.names, self.path(part)
        all_names = None if own is None else [*own, *key_names]
        if path.endswith(PARQUET):
            with _parquet_writer(place, part, all_names, key_names, names) as write:
                yield write
            return
        same = extension_of(path) == part.form.extension
        delimiter, quoted = (part.form.delimiter, part.form.quoted) if same else (None, None)
        header = part.form.header or part.form.extension == TEXT
        form = table_format(path, delimiter, header, quoted, written=True)
        with open_writer(place, form, Head(part.file.path, all_names), names) as write:
            yield write


def key_names(names: Sequence[str] | None) -> list[str]:
    """The names of a row's key, in a table with these columns."""
    return unused_names(KEY_NAMES, names or ())


def _stem(part: Part) -> str:
    return f"{output_stem(part.file.name)}-{part.number:05d}"


def _try(write: WriteRow, row: Row, cells: Sequence[Any]) -> str | None:
    """Writes a row; returns why it cannot be written."""
    try:
        write(row, cells)
    except InputError as error:
        return str(error)
    return None


@contextlib.contextmanager
def _parquet_writer(
    place: str,
    part: Part,
    names: Sequence[str] | None,
    key_names: Sequence[str],
    answer_names: Sequence[str],
) -> Iterator[WriteRow]:
    """Collects the rows of a part; columns of other formats become texts."""
    pyarrow = import_pyarrow()
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    fields = dict.fromkeys(names or map(str, range(part.layout.width)), pyarrow.string())
    if part.layout.schema is not None:
        fields = {field.name: field.type for field in part.layout.schema}
    fields |= dict(zip(key_names, (pyarrow.string(), pyarrow.int64()), strict=True))
    fields |= {name: types[type_of_column(name)] for name in answer_names}
    columns: dict[str, list[Any]] = {name: [] for name in fields}
    are_texts = {name for name, type in fields.items() if type == pyarrow.string()}

    def write(row: Row, answer: Sequence[Any]) -> None:
        if other := row.values.keys() - columns.keys():
            raise InputError(
                f"The first row has no {preview(sorted(other))}, so there is no column for it. "
                "Write .jsonl instead."
            )
        values = row.values | dict(zip(answer_names, answer, strict=True))
        for name, column in columns.items():
            value = values.get(name)
            column.append(_text(value) if name in are_texts and value is not None else value)

    yield write
    arrays = [pyarrow.array(columns[name], type) for name, type in fields.items()]
    pyarrow.parquet.write_table(pyarrow.table(arrays, names=list(fields)), place)


def _text(value: Any) -> str:
    """A value as text; lists and objects of answers as JSON."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    text: str = encodable((cell_text(value),))[0]
    return text
