"""How a table is read for an adapter, and which of its columns hold the texts."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter_bert_tf.data.tables.delimiters import actual_encoding, warn_of_encoding
from adapter_bert_tf.data.tables.stream import (
    OBJECTS,
    extension_of,
    table_format,
    with_found_delimiter,
)
from adapter_bert_tf.errors import Mismatch, Missing, NotFound
from adapter_bert_tf.predict.inputs import Row, listed
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.contents import merge_settings
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.tasks import OWN, TASKS
from adapter_bert_tf.tasks.own import is_number

FORMAT = ("header", "delimiter", "quoted", "encoding")
COLUMNS = ("text_a_column", "text_b_column")


def num_texts(config: Mapping[str, Any]) -> int:
    """How many texts an adapter reads: 1, or 2 of pairs and questions."""
    return type_of(config).num_texts(config["inputs"])


def texts_of(config: Mapping[str, Any], name: str, row: Any, number: int) -> Row:
    """The texts of a row. Raises `InputError`, with the row's number from 0, for other texts."""
    row = tuple(map(listed, row)) if isinstance(row, tuple) else listed(row)  # Arrays of words.
    texts = type_of(config).row(row, config["inputs"])
    if texts is None:
        wanted = type_of(config).reads(config["inputs"])
        raise Mismatch(f"The adapter {name!r} reads {wanted}. Received at {number}: {preview(row)}")
    return texts


def text_columns(
    config: Mapping[str, Any],
    names: Sequence[str] | None,
    text_a: str | int | None = None,
    text_b: str | int | None = None,
) -> list[str | int]:
    """The columns of the texts, by name or by number from 0.

    `names` are the table's columns, None if it has no header; `text_a` and `text_b` are the user's
    choice, None for the columns of the training data. Raises `InputError` for missing columns.
    """
    settings = dict(zip(COLUMNS, (text_a, text_b), strict=True))
    given = {name: str(column) for name, column in settings.items() if column is not None}
    needed = list(settings)[: num_texts(config)]
    if given and list(given) != needed:
        raise Mismatch(
            f"The adapter reads {type_of(config).reads(config['inputs'])}: set "
            f"{' and '.join(needed)} alone. Received: {preview(given)}",
            *needed,
        )
    if given:
        return [_find_column(name, column, names) for name, column in given.items()]
    for candidate in _candidates(config):
        if names is not None and all(column in names for column in candidate):
            return list(candidate)
        if names is None and all(is_number(column) for column in candidate):
            return [int(column) for column in candidate]
    known = " or ".join(str(list(candidate)) for candidate in _candidates(config))
    raise Missing(
        f"Which columns hold the texts? The adapter knows {known}: set {' and '.join(needed)}. "
        f"Received: {_format_names(names)}",
        *needed,
        "quoted=True",
    )


def keys_of(columns: Sequence[str | int], names: Sequence[str] | None) -> list[str]:
    """The keys of columns, given by name or by number from 0, in the rows of a table."""
    return [c if isinstance(c, str) else names[c] if names else str(c) for c in columns]


def reading_options(
    config: Mapping[str, Any], path: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Options of `tables.answer_file`: those of the adapter's table, and the user's in their place.

    `given` are the user's options and text columns; None: as in the adapter's table, or as the file
    itself shows. Warns of options that differ from the adapter's.
    """
    table = config.get("table", {})
    # Objects have no header, delimiter or quotes.
    known = COLUMNS if extension_of(path) in OBJECTS else (*FORMAT, *COLUMNS)
    recorded = {name: table[name] for name in known if name in table}
    options = merge_settings(recorded, {n: v for n, v in given.items() if v is not None})
    if "encoding" in recorded and given.get("encoding") is None:
        options["encoding"] = actual_encoding(path, recorded["encoding"])
        if options["encoding"] != recorded["encoding"]:
            warn_of_encoding(path, recorded["encoding"])
    if "delimiter" in recorded and given.get("delimiter") is None:
        form = table_format(path, **{name: options[name] for name in FORMAT if name in options})
        with contextlib.suppress(OSError):  # Reading the file raises the error.
            options["delimiter"] = with_found_delimiter(path, form).delimiter
    return {name: value for name, value in options.items() if name not in COLUMNS}


def _find_column(setting: str, column: str, names: Sequence[str] | None) -> str | int:
    if names is not None and column in names:
        return column
    if is_number(column) and (names is None or int(column) < len(names)):
        return int(column)
    raise NotFound(
        f"{setting}: there is no column {preview(column)}. Received: {_format_names(names)}",
        setting,
        "quoted=True",
    )


def _format_names(names: Sequence[str] | None) -> str:
    if names is None:
        return "a table without a header"
    is_quoted = any(len(name) > 2 and name[0] == name[-1] == '"' for name in names)
    return preview(list(names)) + (". If cells are quoted, pass quoted=True." * is_quoted)


def _candidates(config: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Possible names of the columns, the most likely first."""
    table, names = config.get("table", {}), type_of(config).text_names[: num_texts(config)]
    if "text_a_column" in table:
        yield tuple(table[f"{name}_column"] for name in names if f"{name}_column" in table)
    yield names
    # The names in the publishers' files.
    published = config["task"] in TASKS and config["task"] != OWN
    for layout in TASKS[config["task"]].layouts if published else ():
        for source in layout.values():
            columns = (source.columns.text_a, source.columns.text_b)[: len(names)]
            if all(isinstance(column, str) for column in columns):
                yield columns  # type: ignore[misc]
