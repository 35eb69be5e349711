"""A task of the user's own: a table described by arguments."""

import dataclasses
import re

from adapter_bert_tf.errors import InputError, Missing
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks.task import Columns, Source, Task

OWN = "tsv"  # The name of every such task.
DEV_SHARE = 0.1  # Of the training data, for a development set without a file.


def own_task(
    text_a: str,
    text_b: str | None = None,
    label: str | None = None,
    *,
    extension: str = "tsv",
    delimiter: str | None = None,
    header: bool = True,
    quoted: bool | None = None,
    encoding: str = "utf-8",
    task_type: str = "classification",
    skip_bad_rows: bool = False,
    train: str = "train",
    dev_share: float = DEV_SHARE,
) -> Task:
    """The task `tsv`: `train`, `dev` and `test` files in one folder.

    Args:
      text_a, text_b, label: columns, by name or by number from 0, as text; `a,b,c` are columns of 0
        and 1, one for each of several labels.
      extension: `tsv`, `csv`, `jsonl` or `parquet`; the last two name their columns themselves.
      delimiter: one character; None: a comma in `.csv`, a tab in `.tsv`.
      header: whether the first row names the columns.
      quoted: whether cells may be quoted; None: in `.csv` files.
      encoding, task_type: as in `Source` and `Task`.
      skip_bad_rows: whether malformed rows are left out, and counted.
      train: name of the training data's file, without its extension.
      dev_share: share of the training data that becomes the development set if there is no file;
        0: none.
    """
    if not text_a:
        raise Missing(
            f"text_a is missing: the column of the text, by name or number. Received: {text_a!r}"
        )
    for column in filter(None, (text_a, text_b, label)):
        if not header and not is_number(column):
            raise InputError(
                f"With header=False columns are numbers from 0. Received: {preview(column)}",
                "header=False",
            )
    plain = Source(
        "",
        Columns(text_a, text_b or None, label or None),
        header=header,
        delimiter=delimiter_of(delimiter, extension),
        strict=True,
        quoted=extension == "csv" if quoted is None else quoted,
        encodings=(encoding,),
        skip_bad_rows=skip_bad_rows,
    )
    layout = {
        split: _source(split, f"{name}.{extension}", plain)
        for split, name in (("train", train), ("dev", "dev"), ("test", "test"))
    }
    return Task(OWN, "predictions", (), (layout,), dev_share=dev_share or None, task_type=task_type)


def _source(split: str, file: str, plain: Source) -> Source:
    """The file of a split. A test file may have labels; one without a header is read without."""
    columns, test = plain.columns, split == "test"
    if test and not plain.header:
        columns = dataclasses.replace(columns, label=None)
    return dataclasses.replace(plain, file=file, columns=columns, optional_label=test)


def delimiter_of(value: str | None, extension: str) -> str:
    """The delimiter of a table: the one given, or that of its extension. Raises `InputError`."""
    if value is None:
        return "," if extension == "csv" else "\t"
    delimiter = "\t" if value == "\\t" else value
    if len(delimiter) != 1 or delimiter in '"\n\r':
        raise InputError(
            f"delimiter must be one character, no quote or line end. Received: {delimiter!r}",
            "delimiter",
        )
    return delimiter


def format_settings(source: Source) -> dict[str, str | bool]:
    """The arguments of `own_task` that differ from the defaults for a file of this extension."""
    extension = source.extension
    values: dict[str, str | bool] = {
        "delimiter": source.delimiter.replace("\t", "\\t"),
        "quoted": source.quoted,
        "encoding": source.encodings[0],
    }
    defaults = {
        "delimiter": delimiter_of(None, extension).replace("\t", "\\t"),
        "quoted": extension == "csv",
        "encoding": "utf-8",
    }
    return {name: value for name, value in values.items() if value != defaults[name]}


def is_number(column: str) -> bool:
    """Whether a column may be meant by its number, which has at most nine digits."""
    return re.fullmatch(r"\d{1,9}", column) is not None
