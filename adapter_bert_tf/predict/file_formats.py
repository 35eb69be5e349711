"""The forms of a table: CSV, TSV, JSON lines; plain or gzipped."""

import dataclasses
import os

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks.own import delimiter_of

ENDINGS = (".csv", ".tsv", ".jsonl")


@dataclasses.dataclass(frozen=True)
class Form:
    """How a table is written down.

    Args:
      ending: `.csv`, `.tsv` or `.jsonl`.
      packed: whether it is gzipped.
      delimiter: between cells; of JSON lines without meaning.
      header: whether the first row names the columns.
      quoted: whether cells may be quoted.
      encoding: of the text.
    """

    ending: str
    packed: bool
    delimiter: str
    header: bool
    quoted: bool
    encoding: str


def form_of(
    path: str,
    delimiter: str | None = None,
    header: bool = True,
    quoted: bool | None = None,
    encoding: str = "utf-8",
) -> Form:
    """The form of a file, by its name. Raises `InputError` for one that is none of these."""
    ending = os.path.splitext(path.removesuffix(".gz"))[1].lower()
    if ending not in ENDINGS:
        raise InputError(
            f"A table's name ends with {', '.join(ENDINGS)}, and .gz may follow. Received: {path!r}"
        )
    return Form(
        ending,
        path.endswith(".gz"),
        delimiter_of(delimiter, ending.removeprefix(".")),
        header,
        ending == ".csv" if quoted is None else quoted,
        "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding,
    )
