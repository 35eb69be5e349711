"""JSON lines: each line is an object with a list of words and a list of tags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from adapter_bert_tf.data.tagging.tag_format import Sentence, TagFormat
from adapter_bert_tf.errors import Damaged, NotFound
from adapter_bert_tf.sanitize import parse_json, preview

TAGS = "tags"  # The key of tags.


def json_sentences(
    lines: Iterable[str], path: str, form: TagFormat, tagged: bool
) -> Iterator[Sentence]:
    """Yields the sentence of each line that is not blank; see `sentences.read_sentences`."""
    for place, number, record in _records(lines, path):
        words = _texts(record, form.word_column or "tokens", "word_column", place)
        tags = _texts(record, form.tag_column or TAGS, "tag_column", place) if tagged else None
        if tags is not None and len(tags) != len(words):
            raise Damaged(
                f"{place}: every word has one tag. Received: {len(words)} words and {len(tags)} "
                "tags"
            )
        yield Sentence(words, tags, number, step=0)


def has_json_tags(lines: Iterable[str], path: str, form: TagFormat) -> bool:
    """Whether the first object has the key of tags, and not null there."""
    _, _, record = next(_records(lines, path))
    return record.get(form.tag_column or TAGS) is not None


def _records(lines: Iterable[str], path: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yields the place, for messages, the number of the line, and the object of each line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            record = parse_json(line, distinct=True)
        except ValueError as error:
            raise Damaged(f"{place}: no JSON: {error}.") from error
        if not isinstance(record, dict):
            raise Damaged(f"{place}: a line is a JSON object. Received: {preview(record)}")
        yield place, number, record


def _texts(record: dict[str, Any], key: str, setting: str, place: str) -> tuple[str, ...]:
    values: Any = record.get(key)
    is_tags = setting == "tag_column"
    is_texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
    if is_texts and (all(values) or not is_tags):
        return tuple(values)
    place = f"{place}: {preview(key)} ({setting})"
    if key not in record:
        raise NotFound(f"{place} is not a key of the object: {preview(list(record))}", setting)
    if is_tags and isinstance(values, list) and any(isinstance(value, int) for value in values):
        raise Damaged(
            f"{place} holds numbers, and the file has no names for them. Write tags, such as "
            f"'B-PER'. Received: {preview(values)}"
        )
    kind = "texts that are not empty" if is_tags else "texts"
    raise Damaged(f"{place} is a list of {kind}. Received: {preview(values)}")
