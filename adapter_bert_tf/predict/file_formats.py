"""Table formats: CSV, TSV, JSON lines; plain or gzipped."""

import dataclasses
import os

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks.own import delimiter_of

EXTENSIONS = (".csv", ".tsv", ".jsonl")


@dataclasses.dataclass(frozen=True)
class TableFormat:
    """Format of a table."""

    extension: str  # `.csv`, `.tsv` or `.jsonl`.
    gzipped: bool
    delimiter: str  # Between cells; ignored for JSON lines.
    header: bool  # Whether the first row names the columns.
    quoted: bool  # Whether cells may be quoted.
    encoding: str


def extension_of(path: str) -> str:
    """`.csv` for `a.csv` and `a.CSV.gz`."""
    return os.path.splitext(path.removesuffix(".gz"))[1].lower()


def table_format(
    path: str,
    delimiter: str | None = None,
    header: bool = True,
    quoted: bool | None = None,
    encoding: str = "utf-8",
) -> TableFormat:
    """The format of a file, by its name. Raises `InputError` for another extension."""
    extension = extension_of(path)
    if extension not in EXTENSIONS:
        raise InputError(
            f"A table's name ends with {', '.join(EXTENSIONS)}, and .gz may follow. Received: "
            f"{path!r}"
        )
    return TableFormat(
        extension,
        path.endswith(".gz"),
        delimiter_of(delimiter, extension.removeprefix(".")),
        header,
        extension == ".csv" if quoted is None else quoted,
        "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding,
    )
