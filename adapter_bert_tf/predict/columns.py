"""Which columns of a table hold the texts that an adapter reads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.tasks import OWN, TASKS
from adapter_bert_tf.tasks.own import is_number


def num_texts(config: Mapping[str, Any]) -> int:
    """How many texts an adapter reads: 1, or 2 of pairs and questions."""
    return type_of(config).num_texts(config["inputs"])


def check_row(config: Mapping[str, Any], name: str, row: Any, number: int) -> None:
    """A row has the texts that the adapter reads. Raises `InputError` with its number, from 0."""
    texts = isinstance(row, tuple) and all(isinstance(text, str) for text in row)
    if not texts or len(row) != num_texts(config):
        wanted = type_of(config).reads(config["inputs"])
        raise InputError(
            f"The adapter {name!r} reads {wanted}. Received, at {number}: {preview(row)}"
        )


def of_texts(
    config: Mapping[str, Any],
    names: Sequence[str] | None,
    text_a: str | int | None = None,
    text_b: str | int | None = None,
) -> list[str | int]:
    """The columns of the texts, by name or by number from 0.

    Args:
      config: of the adapter.
      names: of the table's columns; None if it has no header.
      text_a, text_b: what the user says; None for what the adapter was trained on.

    Raises:
      InputError: when they are not as many as the adapter reads, or not there.
    """
    given = [column for column in (text_a, text_b) if column is not None]
    if text_b is not None and num_texts(config) == 1:
        raise InputError(
            f"The adapter reads single texts: text_a_column. Received: {preview([text_a, text_b])}",
            "text_a_column",
        )
    if given:
        return _given(given, names, num_texts(config))
    for candidate in _candidates(config):
        if names is not None and all(column in names for column in candidate):
            return list(candidate)
        if names is None and all(is_number(column) for column in candidate):
            return [int(column) for column in candidate]
    known = " or ".join(str(list(candidate)) for candidate in _candidates(config))
    raise InputError(
        f"Which columns hold the texts? The adapter knows {known}. Say text_a_column=..., of pairs "
        f"and questions text_b_column=... too. Received: {_shown(names)}",
        "text_a_column=...",
        "text_b_column=...",
    )


def _given(given: Sequence[str | int], names: Sequence[str] | None, count: int) -> list[str | int]:
    if len(given) < count:
        raise InputError(
            "The adapter reads pairs, or a question and its context: text_a_column and "
            f"text_b_column. Received: {preview(given)}",
            "text_a_column",
            "text_b_column",
        )
    if len(given) > count:
        raise InputError(
            f"The adapter reads single texts: text_a_column. Received: {preview(given)}",
            "text_a_column",
        )
    return [_number_or_name(column, names) for column in given]


def _number_or_name(column: str | int, names: Sequence[str] | None) -> str | int:
    if names is not None and column in names:
        return column
    if is_number(str(column)) and (names is None or int(column) < len(names)):
        return int(column)
    raise InputError(
        f"text_a_column or text_b_column: there is no column {preview(column)}. Received: "
        f"{_shown(names)}",
        "text_a_column",
        "text_b_column",
    )


def _shown(names: Sequence[str] | None) -> str:
    return "a table without a header" if names is None else preview(list(names))


def _candidates(config: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """What the columns may be called, the most likely first."""
    table, names = config.get("table", {}), _text_names(config)
    if "text_a_column" in table:
        yield tuple(table[f"{name}_column"] for name in names if f"{name}_column" in table)
    yield names
    if config["task"] != OWN:
        yield from _published(config["task"], len(names))


def _text_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the texts as the inputs of a SavedModel have them."""
    return type_of(config).text_names[: num_texts(config)]


def _published(task: str, count: int) -> Iterator[tuple[str, ...]]:
    """The names of the columns in the publishers' files of a task."""
    layouts = TASKS[task].layouts if task in TASKS else ()
    for columns in (source.columns for layout in layouts for source in layout.values()):
        found = (columns.text_a, columns.text_b)[:count]
        if all(isinstance(column, str) for column in found):
            yield found  # type: ignore[misc]
