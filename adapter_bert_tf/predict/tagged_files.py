"""Files of words with one more column, or one more key: their predicted tags."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from adapter_bert_tf.data.tables.stream import open_table, table_format
from adapter_bert_tf.data.tagging.conll import BLANK
from adapter_bert_tf.data.tagging.sentences import extension_of, read_lines
from adapter_bert_tf.data.tagging.tag_format import TagFormat

PREDICTED = "predicted_tags"
JSON = ".jsonl"


def is_json(path: str) -> bool:
    """Whether a file has an object a line. Raises `InputError` for files of other kinds."""
    return extension_of(path) == JSON


def tagged_lines(path: str, form: TagFormat, tags: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yields the lines of a file with the tags of its words; other lines stay.

    Args:
      path: of columns, or of JSON lines.
      form: how it is read.
      tags: of each sentence, in order; taken when their lines are reached.
    """
    if is_json(path):
        yield from _with_key(path, form, tags)
        return
    words = (tag for sentence in tags for tag in sentence)
    for line in read_lines(path, form):
        yield line.text + "\n" if line.cells is None else _with_cell(line.text, form, next(words))


def column_lines(words: Iterable[str], *columns: Iterable[str]) -> Iterator[str]:
    """Yields the lines of a sentence that is in no file, and a blank one."""
    for cells in zip(words, *columns, strict=True):
        yield "\t".join(cells) + "\n"
    yield "\n"


def _with_cell(text: str, form: TagFormat, tag: str) -> str:
    if form.separator is not None:
        return f"{text}{form.separator}{tag}\n"
    text = text.rstrip(BLANK)
    return f"{text}{chr(9) if chr(9) in text else ' '}{tag}\n"


def _with_key(path: str, form: TagFormat, tags: Iterable[Iterable[str]]) -> Iterator[str]:
    with open_table(path, table_format(path, encoding=form.encoding)) as table:
        for row, sentence in zip(table, tags, strict=False):
            yield json_line(row.values | {PREDICTED: list(sentence)})


def json_line(values: dict[str, Any]) -> str:
    """Returns an object as a line."""
    return json.dumps(values, ensure_ascii=False, default=str) + "\n"
