"""Sentences of tagged words, and the form of the files that hold them."""

from __future__ import annotations

import dataclasses
import os

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview


@dataclasses.dataclass(frozen=True, slots=True)
class Sentence:
    """The words of one sentence, and their tags if they are known."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None  # In the scheme of the file; None: not known.
    line: int  # Of the first word, from 1.
    step: int = 1  # Lines from one word to the next; 0 if a line holds the sentence.
    skipped: tuple[
        int, ...
    ] = ()  # Lines that hold no word, such as comments, after the first word.

    def line_of(self, word: int) -> int:
        """Returns the line of a word, from 1."""
        line = self.line + self.step * word
        for skipped in self.skipped:
            line += skipped <= line
        return line


@dataclasses.dataclass(frozen=True)
class TagFormat:
    """Which columns or keys hold words and tags.

    A column is its number from 0, as text, -1 for the last one; or its name, in a file that begins
    with `# global.columns = FORM NER` (CoNLL-U Plus). In files of JSON lines it is a key.
    """

    tag_column: str | None = None  # None: the last column; the key `tags`.
    word_column: str | None = None  # None: the first column; the key `tokens`.
    separator: str | None = None  # Between two columns; None: blanks and tabs.
    comments: bool = False  # Whether lines that begin with `# ` are left out.
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if self.separator == "\\t":  # As shells pass it.
            object.__setattr__(self, "separator", "\t")
        if self.separator is not None and (not self.separator or "\n" in self.separator):
            raise InputError(
                "separator is the text between two columns, such as a tab. Received: "
                f"{preview(self.separator)}",
                "separator",
            )


def ending_of(path: str) -> str:
    """Returns `.conll` for `a.conll` and `a.CONLL.gz`."""
    return os.path.splitext(path.removesuffix(".gz"))[1].lower()
