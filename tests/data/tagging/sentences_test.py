"""Files of tagged words: what is read, and what is refused, with file and line."""

import gzip
import os
import subprocess
import sys

import pytest

from adapter_bert_tf.data.tagging.sentences import (
    TagFormat,
    has_tags,
    read_lines,
    read_sentences,
)
from adapter_bert_tf.errors import InputError
from tests.refusals import raises_code

GERMEVAL = (
    "#\tn-tv [2005]\n1\tSchartau\tB-PER\tO\n2\tsagte\tO\tO\n\n#\tx\n1\tBonner\tB-LOC\tB-PER\n"
)
CONLL_2003 = "-DOCSTART- -X- O O\n\nEU NNP B-NP I-ORG\nrejects VBZ B-VP O\n\n-DOCSTART- -X- O O\n"
PLUS = "# global.columns = ID FORM NER\n# text\n1 in O\n2 Rome B-LOC\n"
UD = "# sent_id = 1\n1\tin\tin\tADP\n2\tRome\tRome\tPROPN\n"
ONE = [(("in", "Rome"), ("O", "B-LOC"), 1)]
FILES = {  # Content, format, (words, tags, line of the first word) of each sentence.
    "tabs": ("in\tO\nRome\tB-LOC\n\n", {}, ONE),
    "blanks": ("in O\nRome  B-LOC\n", {}, ONE),
    "blanks around": (" in O \n\tRome B-LOC\t\n", {}, ONE),
    "no last line end": ("in\tO\nRome\tB-LOC", {}, ONE),
    "carriage returns and line feeds": ("in\tO\r\nRome\tB-LOC\r\n\r\n", {}, ONE),
    "carriage returns alone": ("in\tO\rRome\tB-LOC\r", {}, ONE),
    "a byte order mark": ("\ufeffin\tO\nRome\tB-LOC\n", {}, ONE),
    "quotation marks": ("\"\tO\n'\tO\n", {}, [(('"', "'"), ("O", "O"), 1)]),
    "blank lines of all kinds": (
        "\n \n\t\na\tO\n\t\nb\tO\n  \n\nc\tO\n\n\n",
        {},
        [(("a",), ("O",), 4), (("b",), ("O",), 6), (("c",), ("O",), 9)],
    ),
    "other space is a part of words": (
        "a\u00a0b\tO\n\u00a0\tO\n\u200b\tO\n\ufe0f\tO\nc\u2028d\x0c\x85\tO\n",
        {},
        [(("a\u00a0b", "\u00a0", "\u200b", "\ufe0f", "c\u2028d\x0c\x85"), ("O",) * 5, 1)],
    ),
    "columns between": (CONLL_2003, {}, [(("EU", "rejects"), ("I-ORG", "O"), 3)]),
    "a column by number": (
        CONLL_2003,
        {"tag_column": "1"},
        [(("EU", "rejects"), ("NNP", "VBZ"), 3)],
    ),
    "a column from the end": (
        CONLL_2003,
        {"tag_column": "-2"},
        [(("EU", "rejects"), ("B-NP", "B-VP"), 3)],
    ),
    "two levels, the outer": (
        GERMEVAL,
        {"word_column": "1", "tag_column": "2", "comments": True},
        [(("Schartau", "sagte"), ("B-PER", "O"), 2), (("Bonner",), ("B-LOC",), 6)],
    ),
    "two levels, the inner": (
        GERMEVAL,
        {"word_column": "1", "comments": True},
        [(("Schartau", "sagte"), ("O", "O"), 2), (("Bonner",), ("B-PER",), 6)],
    ),
    "columns by name": (
        PLUS,
        {"word_column": "FORM", "tag_column": "NER", "comments": True},
        [(("in", "Rome"), ("O", "B-LOC"), 3)],
    ),
    "CoNLL-U": (
        UD,
        {"word_column": "1", "tag_column": "3", "comments": True, "separator": "\\t"},
        [(("in", "Rome"), ("ADP", "PROPN"), 2)],
    ),
    "a word #": ("#\tO\n# O\n", {}, [(("#", "#"), ("O", "O"), 1)]),
    "a word that is no comment": ("#a O\n# b\n", {"comments": True}, [(("#a",), ("O",), 1)]),
    "words with blanks": (
        "New York\tB-LOC\n\n \tO\n",
        {"separator": "\\t"},
        [(("New York",), ("B-LOC",), 1), ((" ",), ("O",), 3)],
    ),
    "another separator": ("in|x|O\nRome|x|B-LOC\n", {"separator": "|"}, ONE),
}


def write(folder, content, name="a.conll"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def rows(path, form=None, tagged=True):
    return [(s.words, s.tags, s.line) for s in read_sentences(path, form or TagFormat(), tagged)]


@pytest.mark.parametrize("name", FILES)
def test_files_of_columns(name, tmp_path):
    content, form, expected = FILES[name]
    path = write(tmp_path, content)
    assert rows(path, TagFormat(**form)) == expected
    untagged = [(words, None, line) for words, _, line in expected]
    assert rows(path, TagFormat(**form), tagged=False) == untagged


@pytest.mark.parametrize("name", ["a.conll.gz", "a.TXT", "a.tsv", "a.bio", "a.iob.gz", "a.conllu"])
def test_names_and_compression(name, tmp_path):
    content = b"in\tO\nRome\tB-LOC\n"
    path = write(tmp_path, gzip.compress(content) if name.endswith(".gz") else content, name)
    assert rows(path) == ONE


def test_another_encoding(tmp_path):
    path = write(tmp_path, "Zürich\tB-LOC\n".encode("latin-1"))
    assert rows(path, TagFormat(encoding="latin-1"))[0][0] == ("Zürich",)
    path = write(tmp_path, "Zürich\tB-LOC\n".encode("utf-16"))
    assert rows(path, TagFormat(encoding="utf-16"))[0][0] == ("Zürich",)


def test_lines_are_what_they_are(tmp_path):
    path = write(tmp_path, "# x\r\n-DOCSTART- O\r\n\t\r\na\tO\r\n")
    lines = list(read_lines(path, TagFormat(comments=True)))
    assert [(line.text, line.cells, line.ends_sentence) for line in lines] == [
        ("# x", None, False),
        ("-DOCSTART- O", None, True),
        ("\t", None, True),
        ("a\tO", ["a", "O"], False),
    ]


JSON = {  # Lines, format, expected.
    "lists": (['{"tokens": ["in", "Rome"], "tags": ["O", "B-LOC"]}'], {}, ONE),
    "other keys": (
        ["", '{"id": 7, "w": ["a b", ""], "ner": ["O", "X"]}', " "],
        {"word_column": "w", "tag_column": "ner"},
        [(("a b", ""), ("O", "X"), 2)],
    ),
    "no words": (
        ['{"tokens": [], "tags": []}', '{"tokens": ["a"], "tags": ["O"]}'],
        {},
        [((), (), 1), (("a",), ("O",), 2)],
    ),
}


@pytest.mark.parametrize("name", JSON)
def test_json_lines(name, tmp_path):
    lines, form, expected = JSON[name]
    path = write(tmp_path, "\n".join(lines), "a.jsonl")
    assert rows(path, TagFormat(**form)) == expected


def test_lines_of_words(tmp_path):
    (by_word,) = read_sentences(write(tmp_path, "\na O\nb O\n"), TagFormat())
    assert [by_word.line_of(word) for word in (0, 1)] == [2, 3]
    commented = "# v\na O\n# x\n# y\nb O\nc O\n# z\nd O\n"
    (by_word,) = read_sentences(write(tmp_path, commented), TagFormat(comments=True))
    assert [by_word.line_of(word) for word in range(4)] == [2, 5, 6, 8]
    path = write(tmp_path, '\n{"tokens": ["a", "b"], "tags": ["O", "O"]}\n', "a.jsonl")
    (by_line,) = read_sentences(path, TagFormat())
    assert [by_line.line_of(word) for word in (0, 1)] == [2, 2]


REFUSED = {  # Name of the file, content, format, code and place.
    "empty": ("a.conll", "", {}, "damaged: a.conll"),
    "blank lines": ("a.conll", "\n\t\n", {}, "damaged: a.conll"),
    "only boundaries": ("a.conll", "-DOCSTART- O\n", {}, "damaged: a.conll"),
    "one column": ("a.conll", "\nin\nRome\n", {}, "damaged: a.conll, line 2"),
    "a word without a tag": ("a.conll", "in\tO\n\nRome\n", {}, "damaged: a.conll, line 3"),
    "an empty tag": ("a.tsv", "in\tO\nat\t\n", {"separator": "\t"}, "damaged: a.tsv, line 2"),
    "an empty word": ("a.tsv", "\tO\n", {"separator": "\t"}, "damaged: a.tsv, line 1"),
    "a column too many": ("a.conll", "in O\nNew York B-LOC\n", {}, "damaged: a.conll, line 2"),
    "a comment that is read": ("a.conll", "# from Rome\nin O\n", {}, "damaged: a.conll, line 2"),
    "tags beyond": ("a.conll", "in O\n", {"tag_column": "2"}, "not_found: a.conll, line 1"),
    "tags before": ("a.conll", "in O\n", {"tag_column": "-3"}, "not_found: a.conll, line 1"),
    "words beyond": ("a.conll", "in O\n", {"word_column": "5"}, "not_found: a.conll, line 1"),
    "no such name": ("a.conll", PLUS, {"tag_column": "POS"}, "not_found: a.conll, line 2"),
    "not UTF-8": ("a.conll", b"in\tO\n\xfc\tO\n", {}, "damaged: a.conll"),
    "an unknown encoding": ("a.conll", "in O\n", {"encoding": "klingon"}, "invalid: klingon"),
    "an encoding of bytes": ("a.conll", "in O\n", {"encoding": "hex"}, "invalid: hex"),
    "cut off": ("a.conll.gz", gzip.compress(b"in\tO\n" * 99)[:-9], {}, "damaged: a.conll.gz"),
    "not compressed": ("a.conll.gz", "in\tO\n", {}, "damaged: a.conll.gz"),
    "numbers of words": ("a.conllu", UD, {"comments": True}, "missing: word_column=1"),
    "no tag": ("a.conll", "in O\nRome\n", {}, "damaged: has no tag"),
    "texts": ("a.txt", "He left .\nIt rained today .\n", {}, "damaged: with a column text"),
    "a table": ("a.csv", "in,O\n", {}, "invalid: a.csv"),
    "no JSON": ("a.jsonl", '{"tokens": ["a"], "tags": ["O"]}\n{', {}, "damaged: a.jsonl, line 2"),
    "no object": ("a.jsonl", "[1]", {}, "damaged: a.jsonl, line 1"),
    "no tags": ("a.jsonl", '{"tokens": ["a"], "ner": ["O"]}', {}, "not_found: a.jsonl, line 1"),
    "null": ("a.jsonl", '{"tokens": ["a"], "tags": null}', {}, "damaged: a.jsonl, line 1"),
    "numbers": ("a.jsonl", '{"tokens": ["a"], "tags": [3]}', {}, "damaged: no names"),
    "tags of no text": ("a.jsonl", '{"tokens": ["a"], "tags": [""]}', {}, "damaged: line 1"),
    "words of no text": ("a.jsonl", '{"tokens": [["a"]], "tags": ["O"]}', {}, "damaged: line 1"),
    "a tag less": ("a.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}', {}, "damaged: line 1"),
    "no JSON words": ("a.jsonl", '{"tokens": [], "tags": []}', {}, "damaged: a.jsonl"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name, tmp_path):
    file, content, form, code = REFUSED[name]
    path = write(tmp_path, content, file)
    with raises_code(code):
        rows(path, TagFormat(**form))


def test_no_file(tmp_path):
    with raises_code("not_found: nowhere.conll"):
        rows(str(tmp_path / "nowhere.conll"))
    (tmp_path / "folder.conll").mkdir()
    with raises_code("unavailable: folder.conll"):
        rows(str(tmp_path / "folder.conll"))


@pytest.mark.parametrize("separator", ["", "\n"])
def test_separators(separator):
    with pytest.raises(InputError):
        TagFormat(separator=separator)


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("a.conll", "in O\n", True),
        ("a.conll", "in\n", False),
        ("a.tsv", "in\t\n", True),  # Damaged, as are the next two.
        ("a.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}', True),
        ("a.jsonl", '{"tokens": ["a"], "tags": [3]}', True),
        ("a.jsonl", '{"tokens": ["a"], "tags": ["O"]}', True),
        ("a.jsonl", '{"tokens": ["a"]}', False),
        ("a.jsonl", '{"tokens": ["a"], "tags": null}', False),
    ],
)
def test_has_tags(file, content, expected, tmp_path):
    form = TagFormat(separator="\t" if file.endswith(".tsv") else None)
    assert has_tags(write(tmp_path, content, file), form) is expected


STREAM = """
import resource, sys, time
from adapter_bert_tf.data.tagging.sentences import TagFormat, read_sentences
sentences = read_sentences(sys.argv[1], TagFormat())
next(sentences)
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
count = sum(1 for _ in sentences)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(count, after - before, time.process_time() - start)
"""


def test_files_are_streamed(tmp_path):
    """100,000 sentences of 8 words: constant memory, 1 MB/s of processor time or more."""
    lines = "".join(f"word{i}\tB-PER\n" for i in range(8)) + "\n"
    path = write(tmp_path, lines * 100_000)
    result = subprocess.run(
        [sys.executable, "-c", STREAM, path], capture_output=True, text=True, check=True
    )
    count, kilobytes, seconds = map(float, result.stdout.split())
    assert count == 99_999 and kilobytes < 2_000
    assert os.path.getsize(path) / 1e6 / seconds > 1
