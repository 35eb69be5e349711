"""Files of words that are already split, with their predicted tags as one more column or key."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from absl import logging

from adapter_bert_tf.data.tables.stream import open_table, table_format
from adapter_bert_tf.data.tagging.conll import BLANK, COLUMN_NAMES, Line
from adapter_bert_tf.data.tagging.schemes import from_iob2
from adapter_bert_tf.data.tagging.sentences import (
    EXTENSIONS,
    extension_of,
    read_lines,
    read_sentences,
)
from adapter_bert_tf.data.tagging.tag_format import TagFormat, ending_of
from adapter_bert_tf.errors import Conflict, InputError, NotFound, Unsupported
from adapter_bert_tf.output.atomic import replace_file
from adapter_bert_tf.permissions import denied_as_input_error
from adapter_bert_tf.predict.tables import AT_ONCE, require_other_file
from adapter_bert_tf.predict.writing import open_text
from adapter_bert_tf.sanitize import format_json, preview
from adapter_bert_tf.store.multitask import is_several
from adapter_bert_tf.task_types import TASK_TYPES, type_of

PREDICTED = "predicted_tags"
JSON = ".jsonl"
PARQUET = ".parquet"
TOKENS = "tokens"  # The key of words in an object.
TEXT = "text"  # The column of raw texts in a table.
OF_WORDS = ("word_column", "separator", "comments")  # Options of files of words.
OF_BOTH = ("encoding", "overwrite", "progress")  # Options of these and of tables.
Answers: TypeAlias = Iterable[dict[str, Any]]


def format_of(
    word_column: str | int | None = None,
    separator: str | None = None,
    comments: bool | None = None,
    encoding: str | None = None,
    tag_column: str | None = None,
) -> TagFormat:
    """Returns how a file of words is read; None where nothing is given."""
    column = None if word_column is None else str(word_column)
    return TagFormat(tag_column, column, separator, bool(comments), encoding or "utf-8")


def format_of_words(
    config: Mapping[str, Any], path: str, output: str, options: Mapping[str, Any]
) -> TagFormat | None:
    """Returns how a tagger reads a file of words; None for a table of texts.

    Args:
      config: of the adapter.
      path: of the file.
      output: the file to write.
      options: of `Predictor.predict_file`. Raises `InputError` for those without effect.
    """
    given = {name: value for name, value in options.items() if value not in (None, False)}
    of_words = {name: given[name] for name in OF_WORDS if name in given}
    if not is_several(config) and type_of(config) is TASK_TYPES["tags"]:
        require_other_file(path, output, bool(given.get("overwrite")))
        form = format_of(**of_words, encoding=given.get("encoding"))
        if holds_words(path, form, given.get("text_a_column")):
            is_json(output)  # Refuses other extensions.
            _refuse([name for name in given if name not in (*OF_WORDS, *OF_BOTH)], "words")
            return form
    _refuse(list(of_words), "texts")
    return None


def _refuse(names: Sequence[str], content: str) -> None:
    if names:
        raise Conflict(
            f"{', '.join(names)} has no effect with a file of {content}. Leave it out.", *names
        )


def holds_words(path: str, form: TagFormat, text_column: str | None = None) -> bool:
    """Whether a file has words, and not rows of raw texts. Raises `InputError` if it is damaged.

    A file of columns has words; only a .tsv file with a cell `text` in its first line is a table.
    An object of JSON lines has words if their key has a list. The user may name either column.
    """
    if text_column is not None or ending_of(path) == ".csv":
        return False
    if form.word_column is not None and ending_of(path) in EXTENSIONS:
        return True
    if ending_of(path) in (JSON, PARQUET):
        with open_table(path, table_format(path, encoding=form.encoding)) as table:
            first = next(iter(table), None)
        return first is not None and _object_holds_words(path, first.values)
    try:
        line = None if is_json(path) else next(read_lines(path, form), None)
    except InputError:  # A name that no file of words has: the reader of tables refuses it.
        return False
    return ending_of(path) != ".tsv" or line is None or TEXT not in (line.cells or ())


def warn_of_table(config: Mapping[str, Any], path: str) -> None:
    """Warns that a tagger reads a file as a table of texts, where it may be one of words."""
    if type_of(config) is TASK_TYPES["tags"] and ending_of(path) == ".tsv":
        logging.warning(
            "%s is read as a table of texts, because its first line has a cell %r. If that is a "
            "word, give the column of words: word_column 0.",
            path,
            TEXT,
        )


def _object_holds_words(path: str, values: Mapping[str, Any]) -> bool:
    """Whether an object has words. Raises `InputError` for a list of another name."""
    lists = [name for name, value in values.items() if isinstance(value, list)]
    if TEXT in values or not lists:
        return False
    if ending_of(path) == PARQUET:
        raise Unsupported(
            f"{path}: lists of words are read from .jsonl, or given to a Predictor, and not from "
            f"Parquet. Received the columns {preview(list(values))}"
        )
    if TOKENS not in lists:
        raise NotFound(
            f"{path}: which key holds the words? Set word_column. Without it the key is "
            f"{TOKENS!r}, or {TEXT!r} for texts. Received the keys {preview(list(values))}",
            "word_column",
        )
    return True


@denied_as_input_error()
def answer_words(
    path: str,
    output: str,
    form: TagFormat,
    scheme: str,
    answers_of: Callable[[Iterator[list[str]]], Answers],
    overwrite: bool = False,
    progress: bool = False,
) -> int:
    """Writes a file with the tags of its words; returns the number of sentences.

    A part of the file is in memory. A file of columns stays as it is, with one more column; as
    JSON lines it has `words`, `entities` and `tags`. Objects keep their keys.

    Args:
      path, output: of columns or of JSON lines, plain or `.gz`.
      form: how `path` is read.
      scheme: of the tags that are written as a column.
      answers_of: from lists of words to answers of a `Predictor`, in order.
      overwrite: whether a file at `output` may be replaced.
      progress: whether to print the progress every few seconds.
    """
    require_other_file(path, output, overwrite)
    from adapter_bert_tf.training.progress import RowProgress  # Needs TensorFlow.

    row_progress = RowProgress(os.path.basename(path), every_seconds=5.0 if progress else 1e9)
    count = 0

    def answers() -> Iterator[dict[str, Any]]:
        nonlocal count
        rows = (list(sentence.words) for sentence in read_sentences(path, form, tagged=False))
        for answer in answers_of(rows):
            count += 1
            if count % AT_ONCE == 0:
                row_progress.add(AT_ONCE)
            yield answer | {"tags": list(from_iob2(answer["tags"], scheme))}

    is_packed = output.endswith(".gz")
    with replace_file(output, overwrite) as place, open_text(place, is_packed) as file:
        file.writelines(_lines(path, output, form, answers()))
    return count


def _lines(path: str, output: str, form: TagFormat, answers: Answers) -> Iterator[str]:
    if is_json(path) and is_json(output):
        yield from _with_keys(path, form, answers)
    elif is_json(output):
        yield from map(json_line, answers)
    elif is_json(path):
        for answer in answers:
            yield from column_lines(answer["words"], answer["tags"])
    else:
        yield from tagged_lines(path, form, (answer["tags"] for answer in answers))


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
        yield from _with_keys(path, form, ({"tags": list(sentence)} for sentence in tags))
        return
    words = (tag for sentence in tags for tag in sentence)
    for line in read_lines(path, form):
        yield _other_line(line) if line.cells is None else _with_cell(line.text, form, next(words))
    next(words, None)  # Reads the sentences to their end, which refuses a file without words.


def column_lines(words: Iterable[str], *columns: Iterable[str]) -> Iterator[str]:
    """Yields the lines of a sentence that is in no file of columns, and a blank one."""
    for cells in zip(words, *columns, strict=True):
        yield "\t".join(cells) + "\n"
    yield "\n"


def json_line(values: dict[str, Any]) -> str:
    """Returns an object as a line."""
    return format_json(values) + "\n"


def _other_line(line: Line) -> str:
    names_columns = line.number == 1 and line.text.startswith(COLUMN_NAMES)
    return f"{line.text}{' PREDICTED' if names_columns else ''}\n"


def _with_cell(text: str, form: TagFormat, tag: str) -> str:
    if form.separator is not None:
        return f"{text}{form.separator}{tag}\n"
    text = text.rstrip(BLANK)
    return f"{text}{chr(9) if chr(9) in text else ' '}{tag}\n"


def _with_keys(path: str, form: TagFormat, answers: Answers) -> Iterator[str]:
    """Yields the objects of a file with `predicted_tags`, and with their entities if known."""
    with open_table(path, table_format(path, encoding=form.encoding)) as table:
        for row, answer in zip(table, answers, strict=True):
            new = {"entities": answer["entities"]} if "entities" in answer else {}
            yield json_line(row.values | new | {PREDICTED: answer["tags"]})
