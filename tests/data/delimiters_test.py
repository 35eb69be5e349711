"""Delimiters, line ends and quotes that a table shows itself: found, or named in errors."""

import gzip
import json

import pytest

from adapter_bert_tf.data.examples import read_source
from adapter_bert_tf.data.tables.delimiters import HEAD, find_delimiter, read_beginning
from adapter_bert_tf.predict.columns import text_columns
from adapter_bert_tf.tasks import own_task
from tests.predict.tables_test import answer
from tests.refusals import raises_code

FOUND = {
    "as usual": ("text,label\na;b,1\n", ",", ","),
    "semicolons": ('text;label\n"good, cheap; new";1\n', ",", ";"),
    "tabs in csv": ("text\tlabel\ngood, cheap\t1\n", ",", "\t"),
    "commas in tsv": ("text,label\ngood,1\n", "\t", ","),
    "bars": ("text|label\ngood|1\n", ",", "|"),
    "one column": ("text\na; b\nc\n", ",", ","),
    "no character in all rows": ("text label\na;b\n", ",", ","),
    "rows of several widths": ("text;label\na;b;1\nc;2\n", ",", ","),
    "Excel's instruction": ("sep=;\ntext;label\n", ",", ","),
    "no name": ("text;\na;b\n", ",", ","),
    "two that fit: more cells": ("id|a;b;c\n1|2;3;4\n", ",", ";"),
    "a cell that goes on after the beginning": ('text;label\na;1\n"b', ",", ";"),
    "nothing": ("", ",", ","),
}


@pytest.mark.parametrize("case", FOUND)
def test_delimiters(case):
    beginning, usual, expected = FOUND[case]
    assert find_delimiter(beginning, usual, quoted=True) == expected


@pytest.mark.parametrize("packed", [False, True])
def test_the_beginning_of_a_file_ends_with_a_line(packed, tmp_path):
    path, content = tmp_path / ("a.csv.gz" if packed else "a.csv"), b"abcdefghi\n" * HEAD
    path.write_bytes(gzip.compress(content) if packed else content)
    beginning = read_beginning(str(path), "utf-8")
    assert beginning == "abcdefghi\n" * (HEAD // 10)
    assert read_beginning(str(path), "no such encoding") == ""


PREDICTED = {
    "semicolons": ("a.csv", "id;text\n1;x, y\n", "x, y"),
    "commas in tsv": ("a.tsv", "id,text\n1,x\n", "x"),
    "carriage returns": ("a.tsv", "id\ttext\r1\tx\r", "x"),
}


@pytest.mark.parametrize("case", PREDICTED)
def test_predict_finds_and_says_it(case, tmp_path, caplog):
    name, content, text = PREDICTED[case]
    (tmp_path / name).write_bytes(content.encode())
    assert answer(tmp_path / name, tmp_path / "out.jsonl") == 1
    assert json.loads((tmp_path / "out.jsonl").read_text())["text"] == text
    assert ("delimiter" in caplog.text) == ("\r" not in content)
    again = tmp_path / name.replace("a.", "b.")
    assert answer(tmp_path / name, again) == 1  # In the same form.
    if "\r" not in content:
        assert again.read_text().splitlines()[0].startswith(content.splitlines()[0])


# As pandas writes it: quoted where a cell has a tab, a line end or a quotation mark.
PANDAS = 'text\tlabel\nplain\t1\n"a\tb"\t0\n"c\nd"\t1\n'
QUOTED = {"cells": PANDAS, "names": '"text"\t"label"\n"plain"\t"1"\n'}


def read(folder, content, **table):
    (folder / "train.tsv").write_text(content)
    task = own_task("text", label="label", **table)
    return read_source(task, task.layouts[0]["train"], str(folder))


@pytest.mark.parametrize("case", QUOTED)
def test_errors_name_quotes_before_rows_are_dropped(case, tmp_path):
    content = QUOTED[case]
    with raises_code("invalid", "quoted=True") as raised:
        read(tmp_path, content)
    assert "skip_bad_rows" not in str(raised.value).partition("quoted=True")[0]
    assert read(tmp_path, content, quoted=True).labels[0] == "1"


def test_predict_names_quotes_before_rows_are_dropped(tmp_path):
    (tmp_path / "a.tsv").write_text(PANDAS)
    with raises_code("invalid", "quoted=True") as raised:
        answer(tmp_path / "a.tsv", tmp_path / "b.csv")
    assert "skip_bad_rows" not in str(raised.value).partition("quoted=True")[0]
    with raises_code("missing", "quoted=True"):
        text_columns({"task": "tsv", "head": "classification", "regression": False,
                      "inputs": {"texts": 1}}, ['"text_a"', '"label"'])  # fmt: skip


def test_rows_that_are_dropped_name_quotes_too(tmp_path, caplog):
    read(tmp_path, PANDAS, skip_bad_rows=True)
    assert "quoted=True" in caplog.text


DOUBLED = {
    'text\tlabel\n"He said ""no""."\t1\n': True,
    'text\tlabel\n"He said no."\t1\nSo ""what""\t0\n': False,
}


@pytest.mark.parametrize("content", DOUBLED)
def test_doubled_quotation_marks_are_said(content, tmp_path, caplog):
    read(tmp_path, content)
    assert ("quoted=True" in caplog.text) == DOUBLED[content]
    caplog.clear()
    if DOUBLED[content]:
        assert read(tmp_path, content, quoted=True).text_a == ['He said "no".']
        assert "quoted=True" not in caplog.text
