"""Files of words with their tags: as columns and as objects, in parts."""

import gzip
import json

import pytest

from adapter_bert_tf.data.tagging.tag_format import TagFormat
from adapter_bert_tf.predict.files import answer_file
from adapter_bert_tf.predict.tagged_files import answer_words, holds_words
from adapter_bert_tf.task_types.tags import TAGS
from tests.refusals import raises_code

COLUMNS = "# a comment\n-DOCSTART- -X- O\n\ncat N \ndog N\n \t\nbig\u00a0one A\n"
TABS = "cat\tN\r\ndog\tN\r\n\r\nmat\tA"
OBJECTS = '{"id": 7, "tokens": ["cat", "dog"]}\n\n{"tokens": [], "x": null}\n{"tokens": ["mat"]}\n'


def answers_of(rows):
    """An entity at each word that begins with a `c` or a `d`; two of them are one."""
    for words in rows:
        tags = ["O"] * len(words)
        for number, word in enumerate(words):
            if word[0] in "cd":
                tags[number] = "I-PET" if number and tags[number - 1] != "O" else "B-PET"
        entities = [{"text": "cat dog"}] if "I-PET" in tags else []
        yield {"entities": entities, "words": list(words), "tags": tags}


@pytest.fixture
def answered(tmp_path):
    """A function from a name, a text, an output and a form to (sentences, what is written)."""

    def write(name, text, output, scheme="IOB2", **form):
        (tmp_path / name).write_text(text, newline="")
        out = tmp_path / output
        path = str(tmp_path / name)
        count = answer_words(path, str(out), TagFormat(**form), scheme, answers_of)
        return count, (gzip.decompress(out.read_bytes()) if output.endswith(".gz") else
                       out.read_bytes()).decode()  # fmt: skip

    return write


def test_columns_get_one_more_and_other_lines_stay(answered):
    count, text = answered("a.conll", COLUMNS, "b.conll", comments=True)
    expected = "# a comment\n-DOCSTART- -X- O\n\ncat N B-PET\ndog N I-PET\n \t\n"
    assert (count, text) == (2, expected + "big\u00a0one A O\n")


def test_the_scheme_and_the_delimiter_are_those_of_the_file(answered):
    count, text = answered("a.tsv", TABS, "b.tsv.gz", "BILOU", separator="\t")
    assert (count, text) == (2, "cat\tN\tB-PET\ndog\tN\tL-PET\n\nmat\tA\tO\n")


def test_packed_files_have_equal_bytes(answered, tmp_path):
    packed = [
        answered("a.tsv", TABS, name) and tmp_path / name for name in ("b.tsv.gz", "c.tsv.gz")
    ]
    assert packed[0].read_bytes() == packed[1].read_bytes()


def test_columns_become_objects_and_objects_columns(answered):
    _, text = answered("a.tsv", TABS, "b.jsonl")
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["words"] for row in rows] == [["cat", "dog"], ["mat"]]
    assert rows[0]["entities"] == [{"text": "cat dog"}] and rows[1]["tags"] == ["O"]
    _, text = answered("a.jsonl", OBJECTS, "b.conll")
    assert text == "cat\tB-PET\ndog\tI-PET\n\n\nmat\tO\n\n"


def test_objects_keep_their_keys(answered):
    count, text = answered("a.jsonl", OBJECTS, "b.jsonl")
    rows = [json.loads(line) for line in text.splitlines()]
    first = {"id": 7, "tokens": ["cat", "dog"], "entities": [{"text": "cat dog"}]}
    assert count == 3 and rows[0] == first | {"predicted_tags": ["B-PET", "I-PET"]}
    assert rows[1] == {"tokens": [], "x": None, "entities": [], "predicted_tags": []}


KINDS = {
    "columns": ("a.conll", COLUMNS, {}, True),
    "a table of texts": ("a.tsv", "id\ttext\n1\tA cat.\n", {}, False),
    "a table, by its word column": ("a.tsv", "text\tid\n1\tA\n", {"word_column": "0"}, True),
    "a word text": ("a.conll", "text\tO\nbig\tO\n", {}, True),
    "texts with lists": ("a.jsonl", '{"x": ["a"], "text": "A cat."}\n', {}, False),
    "objects of words": ("a.jsonl", OBJECTS, {}, True),
    "objects of texts": ("a.jsonl", '{"tokens": "A cat."}\n', {}, False),
    "another key": ("a.jsonl", '{"w": ["a"]}\n', {"word_column": "w"}, True),
    "cells": ("a.csv", "tokens\na\n", {}, False),
}


@pytest.mark.parametrize("case", KINDS)
def test_which_files_hold_words(case, tmp_path):
    name, text, form, expected = KINDS[case]
    (tmp_path / name).write_text(text)
    assert holds_words(str(tmp_path / name), TagFormat(**form)) is expected
    assert not holds_words(str(tmp_path / name), TagFormat(**form), text_column="text")


def test_a_table_with_the_name_of_a_file_of_words_is_said(tmp_path, caplog):
    (tmp_path / "a.tsv").write_text("text\tO\nA cat.\tO\n")
    config = {"task": "tagging", "labels": ["O"], **TAGS.file_fields(), "inputs": {"scheme": "IO"}}
    paths = str(tmp_path / "a.tsv"), str(tmp_path / "b.csv")
    for options, is_said in (({"text_a_column": "text"}, False), ({}, True)):
        answer_file(*paths, config, answers_of_texts, {"overwrite": True, **options})
        assert ("a.tsv is read as a table" in caplog.text) is is_said


def answers_of_texts(rows):
    return ({"entities": [], "words": [], "tags": []} for _ in rows)


def test_lists_under_another_name(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "words": ["a", "b"]}\n')
    with raises_code("not_found: word_column", "'words'"):
        holds_words(str(tmp_path / "a.jsonl"), TagFormat())
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"tokens": [["a", "b"]]}).to_parquet(tmp_path / "a.parquet")
    with raises_code("unsupported: .jsonl", "'tokens'"):
        holds_words(str(tmp_path / "a.parquet"), TagFormat())
    pandas.DataFrame({"text": ["a b"]}).to_parquet(tmp_path / "b.parquet")
    assert not holds_words(str(tmp_path / "b.parquet"), TagFormat())


def test_nothing_is_written_where_something_is_wrong(answered, tmp_path):
    with raises_code("damaged", "line 3"):
        answered("a.conll", "a b\n\nc\n", "b.conll")
    with raises_code("damaged", "no words"):
        answered("a.conll", "-DOCSTART- O\n", "b.conll")
    with raises_code("conflict", "a.conll"):
        answered("a.conll", "a b\n", "a.conll")
    (tmp_path / "b.conll").write_text("mine")
    with raises_code("invalid", "b.conll"):
        answered("a.conll", "a b\n", "b.conll")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.conll", "b.conll"]
