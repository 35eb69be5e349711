"""A task of the user's own: a table of theirs, described by arguments, not by a row of ours."""

import dataclasses

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks.task import ANY_SCORE, Columns, Source, Task


def own_task(
    text_a,
    text_b=None,
    label=None,
    *,
    extension="tsv",
    delimiter=None,
    header=True,
    quoted=None,
    encoding="utf-8",
    regression=False,
):
    """The task `tsv`: `train`, `dev` and `test` files in one folder.

    Args:
      text_a, text_b, label: columns, by name or by number from 0, as text.
      extension: of the files, `tsv` or `csv`.
      delimiter: one character; None: a comma in `.csv`, a tab in `.tsv`.
      header: whether the first row names the columns.
      quoted: whether cells may be quoted; None: in `.csv` files.
      encoding: of the files.
      regression: whether the label is a number to predict.

    Raises:
      InputError: for a missing column or a delimiter of more than one character.
    """
    delimiter = {None: "," if extension == "csv" else "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '"\n\r':
        raise InputError(
            f"delimiter must be one character, no quote or line end. Received: {delimiter!r}",
            "delimiter",
        )
    columns = Columns(*(_column(name, header) for name in (text_a, text_b, label)))
    unlabelled = dataclasses.replace(columns, label=None)
    layout = {
        split: Source(
            f"{split}.{extension}",
            columns if header or split != "test" else unlabelled,
            header=header,
            delimiter=delimiter,
            strict=True,
            optional_label=split == "test",
            quoted=extension == "csv" if quoted is None else quoted,
            encodings=(encoding,),
        )
        for split in ("train", "dev", "test")
    }
    metrics = ("spearman", "pearson") if regression else ("accuracy", "macro_f1")
    return Task(
        "tsv",
        "predictions",
        metrics,
        (layout,),
        dev_share=0.1,
        score_range=ANY_SCORE if regression else None,
    )


def _column(name, header):
    if name in (None, ""):
        return None
    if not header and not name.isdecimal():
        raise InputError(
            f"With header=False columns are numbers from 0. Received: {name!r}", "header=False"
        )
    return name
