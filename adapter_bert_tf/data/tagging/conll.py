"""Files of columns: one word a line, blank lines between sentences (CoNLL-2003, WNUT-17)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from adapter_bert_tf.data.tagging.tag_format import Sentence, TagFormat
from adapter_bert_tf.errors import Damaged, InputError, NotFound
from adapter_bert_tf.sanitize import preview

BOUNDARY = "-DOCSTART-"  # Begins a line between documents.
BLANK = " \t\r\n"  # Other space, such as U+00A0, is a part of words.


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A line of a file; `cells` are the columns of a word, None in other lines."""

    number: int  # From 1.
    text: str  # Without the end of the line.
    cells: list[str] | None
    ends_sentence: bool = False  # Whether the line is blank or between documents.


def conll_lines(lines: Iterable[str], path: str, form: TagFormat) -> Iterator[Line]:
    """Yields every line. Raises `InputError` if two words have different numbers of columns."""
    first: Line | None = None
    for number, raw in enumerate(lines, 1):
        text = raw.rstrip("\r\n")
        stripped = text.strip(BLANK)
        if not stripped or stripped.startswith(BOUNDARY):
            yield Line(number, text, None, ends_sentence=True)
        elif form.comments and (text.startswith(("# ", "#\t")) or text == "#"):
            yield Line(number, text, None)
        else:
            cells = _split(stripped, text, form.separator)
            line = Line(number, text, cells)
            first = first or line
            if len(cells) != len(first.cells or ()):
                raise Damaged(_uneven(path, line, first, form))
            yield line


def conll_sentences(
    lines: Iterable[str], path: str, form: TagFormat, tagged: bool
) -> Iterator[Sentence]:
    """Yields the sentences of a file of columns; see `sentences.read_sentences`."""
    words: list[str] = []
    tags: list[str] = []
    begin, word, tag = 0, None, -1
    for line in conll_lines(lines, path, form):
        if line.cells is None:
            if words and line.ends_sentence:
                yield Sentence(tuple(words), tuple(tags) if tagged else None, begin)
                words, tags = [], []
            continue
        if word is None:
            word = _column(form.word_column or "0", "word_column", line, path)
            tag = _tag_column(form, line, path) if tagged else -1
        begin = begin if words else line.number
        words.append(line.cells[word])
        tags.append(line.cells[tag])
        if not words[-1] or (tagged and not tags[-1]):
            empty = "tag" if words[-1] else "word"
            raise Damaged(f"{path}, line {line.number}: the {empty} is empty.")
    if words:
        yield Sentence(tuple(words), tuple(tags) if tagged else None, begin)


def _split(stripped: str, text: str, separator: str | None) -> list[str]:
    if separator is not None:
        return text.split(separator)
    if "\t" in stripped:
        stripped = stripped.replace("\t", " ")
    cells = stripped.split(" ")  # Without an argument it would also split at U+00A0.
    return [cell for cell in cells if cell] if "" in cells else cells


def _uneven(path: str, line: Line, first: Line, form: TagFormat) -> str:
    few, many = len(line.cells or ()), len(first.cells or ())
    hint = "" if form.separator else " If words hold blanks, set separator to a tab."
    return (
        f"{path}, line {line.number}: a word has {many} columns (line {first.number}). Received "
        f"{few}: {preview(line.text)}.{hint}"
    )


def _tag_column(form: TagFormat, line: Line, path: str) -> int:
    cells = line.cells or []
    if len(cells) < 2:
        raise Damaged(
            f"{path}, line {line.number}: a word and its tag are two columns or more. Received "
            f"one: {preview(line.text)}. Is separator right?",
            "separator",
        )
    return _column(form.tag_column or "-1", "tag_column", line, path)


def _column(name: str, setting: str, line: Line, path: str) -> int:
    cells = line.cells or []
    try:
        number = int(name)
    except ValueError as error:
        raise InputError(
            f"{setting} is the number of a column, from 0, in files of columns. Received: "
            f"{preview(name)}",
            setting,
        ) from error
    if not -len(cells) <= number < len(cells):
        raise NotFound(
            f"{path}, line {line.number}: there is no column {number} ({setting}); the line has "
            f"the columns 0 to {len(cells) - 1}: {preview(line.text)}",
            setting,
        )
    return number
