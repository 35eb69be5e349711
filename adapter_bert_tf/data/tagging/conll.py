"""Files of columns: one word a line, blank lines between sentences (CoNLL-2003, WNUT-17)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from adapter_bert_tf.data.tagging.tag_format import Sentence, TagFormat, ending_of
from adapter_bert_tf.errors import Damaged, Missing, NotFound
from adapter_bert_tf.sanitize import preview

BOUNDARY = "-DOCSTART-"  # Begins a line between documents.
COLUMN_NAMES = "# global.columns ="  # Begins the first line of CoNLL-U Plus.
NUMBERED = ".conllu"  # Ends the names of files whose first column has the numbers of words.
BLANK = " \t\r\n"  # Other space, such as U+00A0, is a part of words.


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A line of a file."""

    number: int  # From 1.
    text: str  # Without the end of the line.
    cells: list[str] | None = None  # The columns of a word; None in all other lines.
    ends_sentence: bool = False  # Whether the line is blank, or between documents.


def conll_lines(lines: Iterable[str], path: str, form: TagFormat) -> Iterator[Line]:
    """Yields every line. Raises `InputError` if two words have different numbers of columns."""
    first: Line | None = None
    for number, raw in enumerate(lines, 1):
        text = raw.rstrip("\r\n")
        stripped = text.strip(BLANK)
        if not stripped or stripped.startswith(BOUNDARY):
            yield Line(number, text, ends_sentence=True)
        elif text[0] == "#" and _is_comment(text, number, form):
            yield Line(number, text)
        else:
            line = Line(number, text, _split(stripped, text, form.separator))
            first = first or line
            if len(line.cells or ()) != len(first.cells or ()):
                message = _uneven(path, line, first, form)
                raise Damaged(message, "comments=True", "separator='\\t'")
            yield line


def conll_sentences(
    lines: Iterable[str], path: str, form: TagFormat, tagged: bool
) -> Iterator[Sentence]:
    """Yields the sentences of a file of columns; see `sentences.read_sentences`."""
    words: list[str] = []
    tags: list[str] = []
    names: list[str] = []
    skipped: list[int] = []
    begin, columns = 0, None
    for line in conll_lines(lines, path, form):
        if line.cells is None:
            if line.number == 1 and line.text.startswith(COLUMN_NAMES):
                names = line.text.removeprefix(COLUMN_NAMES).split()
            if words and line.ends_sentence:
                yield _sentence(words, tags if tagged else None, begin, skipped)
                words, tags, skipped = [], [], []
            elif words:
                skipped.append(line.number)
            continue
        columns = columns or _columns(form, tagged, names, line, path)
        begin = begin if words else line.number
        word, tag = (line.cells[column] for column in columns)
        words.append(word)
        tags.append(tag)
        if not word or not tag:
            kind = "tag" if word else "word"
            raise Damaged(f"{path}, line {line.number}: the {kind} is empty.")
    if words:
        yield _sentence(words, tags if tagged else None, begin, skipped)


def _sentence(words: list[str], tags: list[str] | None, begin: int, skipped: list[int]) -> Sentence:
    known = None if tags is None else tuple(tags)
    return Sentence(tuple(words), known, begin, skipped=tuple(skipped))


def _is_comment(text: str, number: int, form: TagFormat) -> bool:
    if number == 1 and text.startswith(COLUMN_NAMES):
        return True
    return form.comments and (text == "#" or text[1] in " \t")


def _split(stripped: str, text: str, separator: str | None) -> list[str]:
    if separator is not None:
        return text.split(separator)
    cells = stripped.replace("\t", " ").split(" ")  # Without " " it would also split at U+00A0.
    return [cell for cell in cells if cell] if "" in cells else cells


def _uneven(path: str, line: Line, first: Line, form: TagFormat) -> str:
    hint = ""
    if line.text.startswith("#") or first.text.startswith("#"):
        hint = " If lines with # are comments, pass comments=True."
    elif len(line.cells or ()) == 1:
        hint = " This word has no tag."
    elif form.separator is None:
        hint = " If words hold blanks, pass separator='\\t'."
    if ending_of(path) == ".txt" and form.separator is None:
        hint += " Texts that are not split are read from .csv or .jsonl, with a column text."
    return (
        f"{path}, line {line.number}: all words have as many columns as that of line "
        f"{first.number}, {len(first.cells or ())}. Received {len(line.cells or ())}: "
        f"{preview(line.text)}.{hint}"
    )


def _columns(
    form: TagFormat, tagged: bool, names: list[str], line: Line, path: str
) -> tuple[int, int]:
    """Returns the numbers of the columns of words and tags; without tags both are the same."""
    cells = line.cells or [""]
    if form.word_column is None and ending_of(path) == NUMBERED and cells[0].isdecimal():
        raise Missing(
            f"{path}, line {line.number}: the first column of CoNLL-U numbers the words. Pass "
            "word_column=1, tag_column=3 for UPOS, separator='\\t' and comments=True. Received: "
            f"{preview(line.text)}",
            "word_column=1",
            "tag_column=3",
            "separator='\\t'",
            "comments=True",
        )
    word = _column(form.word_column or "0", "word_column", names, line, path)
    if not tagged:
        return word, word
    if len(line.cells or ()) < 2:
        raise Damaged(
            f"{path}, line {line.number}: a word and its tag are two columns or more. Received "
            f"one: {preview(line.text)}. Is separator right?",
            "separator",
        )
    tag = _column(form.tag_column or "-1", "tag_column", names, line, path)
    return word, tag


def _column(name: str, setting: str, names: list[str], line: Line, path: str) -> int:
    count = len(line.cells or ())
    if name in names[:count]:
        return names.index(name)
    number = int(name) if name.removeprefix("-").isdecimal() and len(name) < 9 else count
    if not -count <= number < count:
        known = f"0 to {count - 1}" + (f", or {preview(names)}" if names else "")
        raise NotFound(
            f"{path}, line {line.number}: there is no column {preview(name)} ({setting}). The "
            f"columns are {known}: {preview(line.text)}",
            setting,
        )
    return number
