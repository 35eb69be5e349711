"""Files of rows, answered row by row: never whole in memory, and written whole or not at all."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError, require_bools
from adapter_bert_tf.output.atomic import replace_file, require_creatable
from adapter_bert_tf.permissions import denied_as_input_error
from adapter_bert_tf.predict.file_formats import form_of
from adapter_bert_tf.predict.output_columns import cells_of, free
from adapter_bert_tf.predict.reading import Record, Table, open_table
from adapter_bert_tf.predict.writing import open_written
from adapter_bert_tf.sanitize import format_lines
from adapter_bert_tf.training.progress import RowProgress

AT_ONCE = 2048  # Rows in memory.
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
) -> int:
    """Writes a table with the answers of its rows as more columns, in the same order.

    Args:
      path: `.csv`, `.tsv` or `.jsonl` (an object a line), plain or `.gz`.
      output: in any of these forms.
      names: of the columns of answers; one that the table has already gets `predicted_` before it.
      columns_of: function from the table's names, or None without a header, to the texts' columns.
      answers_of: function from rows of texts to their answers.
      delimiter: one character; None: a comma in `.csv`, a tab in `.tsv`.
      header: whether the first row names the columns.
      quoted: whether cells may be quoted; None: in `.csv`.
      encoding: of the file; what is written is UTF-8.
      skip_bad_rows: whether a row without its texts, with more cells than the header, or that is no
        JSON object, gets empty cells, or is an error.
      overwrite: whether a file at `output` may be replaced.
      progress: whether a line every few seconds says how far it is.

    Returns:
      the number of rows.

    Raises:
      InputError: for a missing or damaged file, a row without its texts, an output that is there,
        or a place that this user may not read or write.
    """
    require_bools(
        header=header, skip_bad_rows=skip_bad_rows, overwrite=overwrite, progress=progress
    )
    if quoted is not None:
        require_bools(quoted=quoted)
    check_places(path, output, overwrite)
    form = form_of(path, delimiter, header, quoted, encoding)
    written = form_of(output, delimiter if _ending(output) == _ending(path) else None, header)
    with open_table(path, form) as table, replace_file(output, overwrite) as place:
        columns = [] if table.is_empty else columns_of(table.names)
        called = free(names, table.names or ())
        with open_written(place, written, table, called) as write:
            for part in _parts(table, RowProgress(os.path.basename(path)) if progress else None):
                found = [_texts(record, columns, table, skip_bad_rows) for record in part]
                answers = iter(answers_of([texts for texts in found if texts is not None]))
                for record, texts in zip(part, found, strict=True):
                    write(record, [""] * len(called) if texts is None else cells_of(next(answers)))
        _say_odd(path, table)
        return table.count


def check_places(path: str, output: str, overwrite: bool) -> None:
    """What is read is there, and what is written is another file. Raises `InputError`."""
    for place in (path, output):
        form_of(place)
    if not storage.exists(path):
        raise InputError(f"There is no file {path!r}.")
    if storage.isdir(path):
        raise InputError(f"{path!r} is a folder. Name one of its files.")
    if storage.real(path) == storage.real(output):
        raise InputError(f"The output must be another file than what is read. Received: {path!r}")
    require_creatable(output)
    if storage.exists(output) and (storage.isdir(output) or not overwrite):
        raise InputError(
            f"{output!r} exists already. Choose another path, or pass overwrite=True.",
            "overwrite=True",
        )


def _ending(path: str) -> str:
    return os.path.splitext(path.removesuffix(".gz"))[1]


def in_parts(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yields the rows in lists of `size`, the last one of what is left."""
    rows = iter(rows)
    while part := list(itertools.islice(rows, size)):
        yield part


def _parts(table: Table, pace: RowProgress | None) -> Iterator[list[Record]]:
    """The rows of a table, some at a time; who comes for the next has done with those before."""
    for part in in_parts(table, AT_ONCE):
        yield part
        if pace:
            pace.add(len(part), table.share_read())


def _texts(
    record: Record, columns: Sequence[str | int], table: Table, skip_bad_rows: bool
) -> Texts | None:
    """The texts of a record; None if it lacks one, or is no row at all: such may be skipped."""
    fault = record.fault or _surplus(record, table)
    if fault is None:
        found = [record.text(column) for column in columns]
        texts = tuple(text for text in found if text is not None)
        if len(texts) == len(columns):
            table.empty += [] if all(text.strip() for text in texts) else [record.line]
            return texts
        fault = f"this row has no text in the columns {columns}."
    if not skip_bad_rows:
        raise InputError(
            f"{table.path}, line {record.line}: {fault} Mend it, or say skip_bad_rows=True: such "
            "rows then get no answer, and lose what is too much.",
            "skip_bad_rows=True",
        )
    table.bad.append(record.line)
    return None


def _surplus(record: Record, table: Table) -> str | None:
    """What is wrong with a row of more cells than the header, or None."""
    if table.names is None or len(record.cells) <= len(table.names):
        return None
    if table.form.ending == ".jsonl":
        return None
    return (
        f"{len(record.cells)} cells under a header of {len(table.names)}. Is a delimiter in a text "
        "not quoted?"
    )


def _say_odd(path: str, table: Table) -> None:
    """Says which rows got no answer, and which an answer to nothing."""
    for lines, what in (
        (table.bad, "got no answer"),
        (table.empty, "have an empty text, and an answer to that"),
    ):
        if lines:
            said = f"{len(lines)} of {table.count} rows {what} ({format_lines(lines)})."
            print(f"{path}: {said}", flush=True)
