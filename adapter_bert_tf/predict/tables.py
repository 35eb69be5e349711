"""Table prediction: reads a file in batches of rows and writes them with their answers."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from adapter_bert_tf import storage
from adapter_bert_tf.data.tables.malformed_rows import quotes_hint
from adapter_bert_tf.data.tables.rows import Row, texts_of
from adapter_bert_tf.data.tables.stream import (
    Table,
    open_table,
    output_format,
    table_format,
    with_found_delimiter,
)
from adapter_bert_tf.errors import Conflict, InputError, NotFound, require_bools
from adapter_bert_tf.output.atomic import replace_file, require_creatable
from adapter_bert_tf.permissions import denied_as_input_error
from adapter_bert_tf.predict.columns import keys_of
from adapter_bert_tf.predict.writing import Writer, open_writer, unused_names
from adapter_bert_tf.sanitize import format_lines
from adapter_bert_tf.task_types import TaskType

AT_ONCE, CHARACTERS = 2048, 1 << 22  # In memory: rows, and the characters that a model reads.
Texts: TypeAlias = tuple[str, ...]


@denied_as_input_error()
def answer_file(
    path: str,
    output: str,
    names: Sequence[str],
    columns_of: Callable[[Sequence[str] | None], list[str | int]],
    answers_of: Callable[[list[Texts]], Iterable[dict[str, Any]]],
    delimiter: str | None = None,
    header: bool = True,
    quoted: bool | None = None,
    encoding: str = "utf-8",
    skip_bad_rows: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    cells_of: Callable[[dict[str, Any]], list[Any]] = TaskType.cells,
    problem_of: Callable[[Texts], str | None] = lambda texts: None,
) -> int:
    """Writes a table with the answers of its rows as more columns; returns the number of rows.

    Args:
      path, output: `.csv`, `.tsv` or `.jsonl` (an object a line), plain or `.gz`; `path` may
        also be `.parquet`.
      names: of the columns of answers; one that the table has already gets `predicted_` before it.
      columns_of: function from the table's names, or None without a header, to the texts' columns.
      answers_of: function from rows of texts to their answers.
      delimiter, header, quoted, encoding: as in `table_format`; the output is UTF-8.
      skip_bad_rows: whether a malformed row gets empty cells, or is an error: one without its
        texts, with a problem, with more cells than the header (or the first row), that is not a
        JSON object, or that the output cannot hold.
      overwrite: whether a file at `output` may be replaced.
      progress: whether to print the progress every few seconds.
      cells_of: function from an answer to its values for `names`.
      problem_of: function from the texts of a row to why they cannot be answered, or None.

    Raises:
      InputError: for a missing or damaged file, a malformed row, an existing output, or a place
        that this user may not read or write.
    """
    require_bools(header=header, skip_bad_rows=skip_bad_rows)
    require_bools(overwrite=overwrite, progress=progress)
    if quoted is not None:
        require_bools(quoted=quoted)
    check_places(path, output, overwrite)
    source_format = table_format(path, delimiter, header, quoted, encoding)
    if delimiter is None:
        source_format = with_found_delimiter(path, source_format)
    with open_table(path, source_format) as table, replace_file(output, overwrite) as place:
        columns = [] if table.is_empty else columns_of(table.names)
        answer_names = unused_names(names, table.names or ())
        from adapter_bert_tf.training.progress import RowProgress  # Needs TensorFlow.

        row_progress = RowProgress(os.path.basename(path)) if progress else None
        form = output_format(output, source_format, header)
        with open_writer(place, form, table, answer_names) as writer:
            texts_of = _TextReader(table, columns, writer, skip_bad_rows, problem_of)
            for rows in in_parts(table, AT_ONCE):
                texts = [texts_of(row) for row in rows]
                answers = iter(answers_of([row for row in texts if row is not None]))
                for row, row_texts in zip(rows, texts, strict=True):
                    is_bad = row_texts is None
                    writer.write(row, [None] * len(names) if is_bad else cells_of(next(answers)))
                if row_progress:
                    row_progress.add(len(rows), table.fraction_read())
        texts_of.report(table.num_rows)
        return table.num_rows


def check_places(path: str, output: str, overwrite: bool) -> None:
    """Raises `InputError` unless the input exists and the output is another, writable file."""
    table_format(path)
    table_format(output, written=True)
    require_other_file(path, output, overwrite)


def require_other_file(path: str, output: str, overwrite: bool) -> None:
    """Raises `InputError` unless a file exists and an output is another, writable one."""
    if not storage.exists(path):
        raise NotFound(f"There is no file {path!r}.")
    if storage.isdir(path):
        raise InputError(f"{path!r} is a folder. Name one of its files.")
    if storage.real(path) == storage.real(output):
        raise Conflict(f"The output must be another file than what is read. Received: {path!r}")
    require_creatable(output)
    if storage.exists(output) and (storage.isdir(output) or not overwrite):
        message = f"{output!r} exists already. Choose another path, or pass overwrite=True."
        raise InputError(message, "overwrite=True")


def in_parts(
    rows: Iterable[Any], size: int, length_of: Callable[[Any], int] = lambda row: 0
) -> Iterator[list[Any]]:
    """Yields the rows in lists of `size`; long ones in shorter lists, of some `CHARACTERS`."""
    part, characters = list[Any](), 0
    for row in rows:
        part.append(row)
        characters += length_of(row)
        if len(part) == size or characters >= CHARACTERS:
            yield part
            part, characters = [], 0
    if part:
        yield part


class _TextReader:
    """Takes the texts out of rows, and notes the lines of rows without one.

    `columns` are those of the texts, by name or by number from 0; `writer` is that of the output;
    `problem_of` is that of `answer_file`. A bad row has no texts, or is an error unless
    `skip_bad_rows`.
    """

    def __init__(
        self,
        table: Table,
        columns: Sequence[str | int],
        writer: Writer,
        skip_bad_rows: bool,
        problem_of: Callable[[Texts], str | None],
    ) -> None:
        self.path, self.writer, self.problem_of = table.path, writer, problem_of
        self.skip_bad_rows, self.is_plain = skip_bad_rows, table.format.is_plain
        self.keys = keys_of(columns, table.names)
        self.bad_lines, self.empty_lines = list[int](), list[int]()

    def __call__(self, row: Row) -> Texts | None:
        """The texts of a row, or None of a bad one. Raises `InputError`."""
        texts = self._texts_or_reason(row)
        if not isinstance(texts, str):
            if not all(text.strip() for text in texts):
                self.empty_lines.append(row.line)
            return texts
        if not self.skip_bad_rows:
            cells = map(str, row.values.values())
            hint = quotes_hint(list(cells)) if self.is_plain else ""
            raise InputError(
                f"{self.path}, line {row.line}: {texts}{hint} Correct it, or pass "
                "skip_bad_rows=True: such rows then get no answer, and lose surplus cells.",
                "skip_bad_rows=True",
                "quoted=True",
            )
        self.bad_lines.append(row.line)
        return None

    def _texts_or_reason(self, row: Row) -> Texts | str:
        """The texts of a row; or why it cannot be answered, as a sentence."""
        texts = texts_of(row, self.keys)
        if isinstance(texts, str):
            return texts
        if problem := self.problem_of(texts):
            return f"{problem}."
        return self.writer.problem(row) or texts

    def report(self, num_rows: int) -> None:
        """Prints which rows got no answer, and which have an empty text."""
        empty = "have an empty text, and an answer to that"
        for lines, what in ((self.bad_lines, "got no answer"), (self.empty_lines, empty)):
            if lines:
                count = f"{len(lines)} of {num_rows} rows"
                print(f"{self.path}: {count} {what} ({format_lines(lines)}).", flush=True)
