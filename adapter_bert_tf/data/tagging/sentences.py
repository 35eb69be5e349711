"""Streams the sentences of a file: columns (CoNLL) or JSON lines, plain or gzipped."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Any

from adapter_bert_tf import storage
from adapter_bert_tf.data.tables.delimiters import line_end, read_beginning, utf16_hint
from adapter_bert_tf.data.tagging.conll import Line, conll_lines, conll_sentences
from adapter_bert_tf.data.tagging.jsonl import has_json_tags, json_sentences
from adapter_bert_tf.data.tagging.tag_format import Sentence, TagFormat, ending_of
from adapter_bert_tf.errors import Damaged, InputError, NotFound, Unavailable
from adapter_bert_tf.sanitize import preview, truncate

__all__ = ["Sentence", "TagFormat", "has_tags", "read_lines", "read_sentences"]

COLUMNS = (
    ".conll",
    ".txt",
    ".tsv",
    ".bio",
    ".iob",
    ".iob2",
    ".conllu",
    ".train",
    ".testa",
    ".testb",
)
EXTENSIONS = (*COLUMNS, ".jsonl")


def read_sentences(path: str, form: TagFormat, tagged: bool = True) -> Iterator[Sentence]:
    """Yields the sentences of a file, in order; a part of the file is in memory.

    Args:
      path: local or gs://; its name ends as one of `EXTENSIONS`, and `.gz` may follow. A file of
        columns has one word a line, and blank lines between sentences.
      form: columns or keys.
      tagged: whether tags are read; if not, no column of tags is needed.

    Raises:
      InputError: with file and line, for a sentence without tags, a missing column, or a damaged
        file.
    """
    read = json_sentences if extension_of(path) == ".jsonl" else conll_sentences
    has_words = False
    with _open_text(path, form.encoding) as text:
        for sentence in read(text, path, form, tagged):
            has_words = has_words or bool(sentence.words)
            yield sentence
    if not has_words:
        raise Damaged(f"{path} is empty: it has no words.")


def has_tags(path: str, form: TagFormat) -> bool:
    """Whether a file has tags, so that its predictions can be scored.

    Its words have no tags if they are its only column, or if the key of tags is missing or null in
    the first object. Raises `InputError` if the first sentence has no readable words.
    """
    next(read_sentences(path, form, tagged=False))
    with _open_text(path, form.encoding) as text:
        if extension_of(path) == ".jsonl":
            return has_json_tags(text, path, form)
        return any(len(line.cells) > 1 for line in conll_lines(text, path, form) if line.cells)


def read_lines(path: str, form: TagFormat) -> Iterator[Line]:
    """Yields every line of a file of columns, as what it is: word, blank, comment or boundary."""
    with _open_text(path, form.encoding) as text:
        yield from conll_lines(text, path, form)


def extension_of(path: str) -> str:
    """Returns `.conll` for `a.conll` and `a.CONLL.gz`. Raises `InputError` for another file."""
    extension = ending_of(path)
    if extension not in EXTENSIONS:
        raise InputError(
            f"The name of a file of tagged words ends with {', '.join(EXTENSIONS)}, and .gz may "
            f"follow. Received: {path!r}"
        )
    return extension


@contextlib.contextmanager
def _open_text(path: str, encoding: str) -> Iterator[Iterable[str]]:
    """Opens a file to iterate its lines; errors of the file become `InputError`."""
    if not storage.exists(path):
        raise NotFound(f"No file {path!r}.")
    encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
    lines = _CountedLines()
    try:
        (local,) = storage.cached(path)
        newline = line_end(read_beginning(local, encoding), quoted=False)
        with open(local, "rb") as raw:
            data: Any = gzip.GzipFile(fileobj=raw) if path.endswith(".gz") else raw
            with _decoded(data, path, encoding, newline) as lines.text:
                yield lines
    except (UnicodeError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        hint = utf16_hint(storage.read_bytes(path, 2))
        raise Damaged(
            f"{path}, after line {lines.count}: {truncate(str(error), 200)}. Is the file "
            f"complete, and is encoding{hint} right?",
            "encoding",
        ) from error
    except OSError as error:
        raise Unavailable(f"Cannot read {path!r}: {storage.reason(error)}") from error


def _decoded(data: Any, path: str, encoding: str, newline: str) -> IO[str]:
    try:
        return io.TextIOWrapper(data, encoding, newline=newline)
    except (LookupError, ValueError) as error:  # Also for encodings of bytes, such as hex.
        raise InputError(f"Unknown encoding {preview(encoding)} for {path}.", "encoding") from error


class _CountedLines:
    """The lines of a text; `count` is how many were read."""

    def __init__(self) -> None:
        self.text: Iterable[str] = ()
        self.count = 0

    def __iter__(self) -> Iterator[str]:
        for line in self.text:
            self.count += 1
            yield line
