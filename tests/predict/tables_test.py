"""Files are answered row by row: all columns kept, whole or not at all."""

import csv
import datetime
import decimal
import gzip
import io
import json
import math
import os

import pytest

from adapter_bert_tf.data.tables import rows as table_rows
from adapter_bert_tf.predict import tables
from tests.refusals import raises_code

NAMES = ["label", "probability_no"]


def answers_of(rows):
    return [
        {"label": f"<{'+'.join(row)}>", "probabilities": {"no": len(row[0]) / 8}} for row in rows
    ]


def answer(source, output, columns=("text",), answers=answers_of, **reading):
    def columns_of(names):
        assert names is None or all(c in names for c in columns if isinstance(c, str))
        return list(columns)

    return tables.answer_file(str(source), str(output), NAMES, columns_of, answers, **reading)


def written(path):
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


FORMS = {  # (name, content, settings): what is read.
    "csv": ("a.csv", 'id,text\n1,x\n2,"y, ""z""\nw"\n', {}),
    "tsv": ("a.tsv", 'id\ttext\n1\tx\n2\ty, "z\n', {}),
    "quoted tsv": ("a.tsv", 'id\ttext\n1\tx\n2\t"y\tz"\n', {"quoted": True}),
    "json lines": ("a.jsonl", '{"id": 1, "text": "x"}\n\n{"id": 2, "text": "y\\nz"}\n', {}),
    "a delimiter": ("a.csv", "id;text\n1;x\n2;y, z\n", {"delimiter": ";"}),
    "a mark and carriage returns": ("a.csv", "\ufeffid,text\r\n1,x\r\n2,y\r\n", {}),
    "latin-1": ("a.csv", "id,text\n1,x\n2,é\n".encode("latin-1"), {"encoding": "latin-1"}),
    "spaces in the header": ("a.csv", "id, text \n1,x\n2,y\n", {}),
    "blank lines": ("a.csv", "\nid,text\n1,x\n\n2,y\n\n", {}),
}


def put(folder, name, content, packed=False):
    data = content if isinstance(content, bytes) else content.encode()
    path = folder / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "csv.gz"])
@pytest.mark.parametrize("case", FORMS)
def test_every_form_is_read_and_written(case, ending, packed, tmp_path):
    name, content, reading = FORMS[case]
    source, output = put(tmp_path, name, content, packed), tmp_path / f"out.{ending}"
    if name.endswith(".csv") and ending != "jsonl" and reading.get("delimiter"):
        reading = reading | {"delimiter": ";"}
    assert answer(source, output, **reading) == 2
    text = written(output)
    if ending == "jsonl":
        rows = [json.loads(line) for line in text.splitlines()]
    else:
        rows = list(csv.DictReader(io.StringIO(text), delimiter=reading.get("delimiter", ",")))
    texts = [row[" text "] if " text " in row else row["text"] for row in rows]
    assert [row["label"] for row in rows] == [f"<{text}>" for text in texts]
    assert texts[0] == "x" and len(texts) == 2 and str(rows[1]["id"]) == "2"
    assert float(rows[0]["probability_no"]) == 1 / 8
    assert os.listdir(tmp_path).count(source.name) == 1 and len(os.listdir(tmp_path)) == 2


VALUES = {  # A value of Parquet, and the cell.
    "a date": (datetime.date(2020, 1, 2), "2020-01-02"),
    "a time of a day": (datetime.datetime(2020, 1, 2, 3), "2020-01-02 03:00:00"),
    "a decimal": (decimal.Decimal("1.50"), "1.50"),
    "bytes that are no text": (b"\xff", "b'\\xff'"),
    "a number": (0.5, "0.5"),
    "a list": (["é", "b"], '["é", "b"]'),
    "an object": ({"a": datetime.date(2020, 1, 2)}, '{"a": "2020-01-02"}'),
    "nothing": (None, ""),
    "not a number": (math.nan, ""),
    "bytes in an object": ({"a": b"b", "c": math.nan}, '{"a": "b", "c": null}'),
}


def test_values_of_parquet_as_cells(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    columns = {name: [value] for name, (value, _) in VALUES.items()} | {"text": ["x"]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    assert answer(tmp_path / "a.parquet", tmp_path / "b.csv") == 1
    (row,) = csv.DictReader(io.StringIO(written(tmp_path / "b.csv")))
    assert {name: row[name] for name in VALUES} == {n: cell for n, (_, cell) in VALUES.items()}
    answer(tmp_path / "a.parquet", tmp_path / "b.jsonl")
    row = json.loads(written(tmp_path / "b.jsonl"), parse_constant=pytest.fail)
    assert row["not a number"] is None


def test_nan_is_no_text(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": 1.5}\n{"text": NaN}\n')
    assert answer(tmp_path / "a.jsonl", tmp_path / "b.jsonl", skip_bad_rows=True) == 2
    rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert [(row["text"], row["label"]) for row in rows] == [(1.5, "<1.5>"), (None, None)]


def test_without_a_header_and_by_number(tmp_path):
    source = put(tmp_path, "a.tsv", "1\tx\tp\n2\ty\tq\n")
    assert answer(source, tmp_path / "b.tsv", [1, 2], header=False) == 2
    assert (tmp_path / "b.tsv").read_text().splitlines()[0] == "1\tx\tp\t<x+p>\t0.125"
    answer(source, tmp_path / "b.jsonl", [1, 2], header=False)
    first = json.loads((tmp_path / "b.jsonl").read_text().splitlines()[0])
    assert first == {"0": "1", "1": "x", "2": "p", "label": "<x+p>", "probability_no": 0.125}


def test_columns_that_are_there_already_stay(tmp_path):
    source = put(tmp_path, "a.csv", "text,label,predicted_label\nx,1,2\n")
    answer(source, tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text().splitlines() == [
        "text,label,predicted_label,predicted_predicted_label,probability_no",
        "x,1,2,<x>,0.125",
    ]


def test_a_table_of_one_column_has_rows_without_a_text(tmp_path):
    source = put(tmp_path, "a.csv", "text\nx\n\ny\n\n")
    assert answer(source, tmp_path / "b.csv") == 3
    assert (tmp_path / "b.csv").read_text().splitlines()[2] == ",<>,0.0"


def test_a_quoted_cell_without_text_is_a_row_even_at_the_end(tmp_path):
    """`pandas.DataFrame.to_csv` writes an empty text of a table of one column so."""
    source = put(tmp_path, "a.csv", 'text\nx\n""\ny\n""\n""\n')
    assert answer(source, tmp_path / "b.csv") == 5
    lines = (tmp_path / "b.csv").read_text().splitlines()[1:]
    assert [line.partition(",")[0] for line in lines] == ["x", "", "y", "", ""]


@pytest.mark.parametrize("name, content", [("a.csv", "text\n"), ("a.jsonl", "")])
def test_no_rows_are_no_error(name, content, tmp_path):
    assert answer(put(tmp_path, name, content), tmp_path / "b.csv") == 0
    assert (tmp_path / "b.csv").read_text() in ("text,label,probability_no\n", "")


def test_rows_without_their_texts_are_named_and_may_be_skipped(tmp_path, capsys):
    source = put(tmp_path, "a.csv", "id,text\n1,x\n2\n3,y\n4\n")
    with raises_code("invalid", "a.csv, line 3"):
        answer(source, tmp_path / "b.csv")
    assert os.listdir(tmp_path) == ["a.csv"]
    assert answer(source, tmp_path / "b.csv", skip_bad_rows=True) == 4
    assert "2 of 4 rows got no answer (lines 3, 5)" in capsys.readouterr().out
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert lines[1:] == ["1,x,<x>,0.125", "2,,,", "3,y,<y>,0.125", "4,,,"]


def test_empty_texts_are_answered_and_named(tmp_path, capsys):
    source = put(tmp_path, "a.csv", "id,text\n1,x\n2,\n3, \n")
    assert answer(source, tmp_path / "b.csv") == 3
    assert "2 of 3 rows have an empty text, and an answer to that (lines 3, 4)" in (
        capsys.readouterr().out
    )


def test_rows_with_too_many_cells_are_named_and_may_be_skipped(tmp_path):
    source = put(tmp_path, "a.csv", "id,text\n1,x\n2,too,many\n3,y\n")
    with raises_code("invalid", "a.csv, line 3"):
        answer(source, tmp_path / "b.csv")
    assert os.listdir(tmp_path) == ["a.csv"]
    assert answer(source, tmp_path / "b.csv", skip_bad_rows=True) == 3
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert lines[1:] == ["1,x,<x>,0.125", "2,too,,", "3,y,<y>,0.125"]


def test_lines_that_are_no_objects_are_named_and_may_be_skipped(tmp_path):
    lines = ["[1]", '{"id": 1, "text": "x"}', '{"id"', '{"id": 2, "text": "y"}']
    source = put(tmp_path, "a.jsonl", "".join(f"{line}\n" for line in lines))
    with raises_code("invalid", "a.jsonl, line 1"):
        answer(source, tmp_path / "b.csv")
    assert os.listdir(tmp_path) == ["a.jsonl"]
    assert answer(source, tmp_path / "b.csv", skip_bad_rows=True) == 4
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert lines[1:] == [",,,", "1,x,<x>,0.125", ",,,", "2,y,<y>,0.125"]
    assert answer(source, tmp_path / "b.jsonl", skip_bad_rows=True) == 4
    rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert [row.get("id") for row in rows] == [None, 1, None, 2]


WRITTEN = {  # (name, content, output, settings): the lines of the output.
    "a key that an answer has, too": (
        ("a.jsonl", '{"text": "x"}\n{"text": "y", "label": "gold"}\n', "b.jsonl", {}),
        [
            '{"text": "x", "predicted_label": "<x>", "probability_no": 0.125}',
            '{"text": "y", "label": "gold", "predicted_label": "<y>", "probability_no": 0.125}',
        ],
    ),
    "a key of the second object": (
        ("a.jsonl", '{"text": "x"}\n{"text": "y", "z": 1}\n', "b.csv", {}),
        ["text,z,label,probability_no", "x,,<x>,0.125", "y,1,<y>,0.125"],
    ),
    "a first object without its text": (
        ("a.jsonl", '{"id": 1}\n{"text": "x", "id": 2}\n', "b.csv", {}),
        ["id,text,label,probability_no", "1,,,", "2,x,<x>,0.125"],
    ),
    "a carriage return in a line": (
        ("a.tsv", "text\tid\nx\ry\t1\n", "b.tsv", {}),
        ["text\tid\tlabel\tprobability_no", "x\ry\t1\t<x\ry>\t0.375"],
    ),
    "quoted cells": (
        ("a.tsv", 'text\tid\n"x\ty"\t1\n', "b.tsv", {"quoted": True}),
        ["text\tid\tlabel\tprobability_no", '"x\ty"\t1\t"<x\ty>"\t0.375'],
    ),
    "cells that the output cannot hold": (
        ("a.csv", 'text,id\n"x\ty",1\nz,2\n', "b.tsv", {}),
        ["text\tid\tlabel\tprobability_no", "x y\t1\t\t", "z\t2\t<z>\t0.125"],
    ),
    "no header, and rows of other widths": (
        ("a.csv", "x,p,q\ny\nz,r\nw,s,t,u\n", "b.csv", {"header": False, "columns": [0]}),
        ["x,p,q,<x>,0.125", "y,,,<y>,0.125", "z,r,,<z>,0.125", "w,s,t,,"],
    ),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_what_is_written(case, tmp_path):
    (name, content, output, settings), lines = WRITTEN[case]
    answer(put(tmp_path, name, content), tmp_path / output, skip_bad_rows=True, **settings)
    assert (tmp_path / output).read_bytes().decode().split("\n") == [*lines, ""]


LATER = {  # Output: its last line, after a row whose keys are known.
    "b.jsonl": '{"text": "y", "label": "gold", "predicted_label": "<y>", "probability_no": 0.125}',
    "b.csv": "y,,",
}


@pytest.mark.parametrize("output", LATER)
def test_a_key_behind_the_first_rows_that_an_answer_has_too(output, tmp_path, monkeypatch):
    monkeypatch.setattr(table_rows, "FIRST_ROWS", 1)
    source = put(tmp_path, "a.jsonl", '{"text": "x"}\n{"text": "y", "label": "gold"}\n')
    assert answer(source, tmp_path / output, skip_bad_rows=True) == 2
    assert (tmp_path / output).read_text().splitlines()[-1] == LATER[output]


@pytest.mark.parametrize("name", ["overwrite", "header", "quoted", "skip_bad_rows", "progress"])
def test_a_word_is_no_truth(name, tmp_path):
    """It would count as true, and a file be replaced for `overwrite="no"`."""
    source, output = put(tmp_path, "a.csv", "text\nx\n"), put(tmp_path, "b.csv", "mine")
    with raises_code("invalid", name, "'no'"):
        answer(source, output, **{name: "no"})
    assert output.read_text() == "mine"


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("jsonl", '{"text": "x", "label": null, "probability_no": 1}'),
        ("csv", "x,,1"),
        ("tsv", "x\t\t1"),
    ],
)
def test_what_there_is_not(ending, said, tmp_path):
    """Nothing, where a file can say so."""
    source = put(tmp_path, "a.csv", "text\nx\n")

    def answers(rows):
        return [{"label": None, "probabilities": {"no": 1}} for _ in rows]

    answer(source, tmp_path / f"out.{ending}", answers=answers)
    assert written(tmp_path / f"out.{ending}").splitlines()[-1] == said


def test_many_rows_come_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "AT_ONCE", 7)
    source = put(tmp_path, "a.csv", "text\n" + "".join(f"t{i}\n" for i in range(50)))
    assert answer(source, tmp_path / "b.csv", progress=True) == 50
    labels = [line.split(",")[1] for line in (tmp_path / "b.csv").read_text().splitlines()[1:]]
    assert labels == [f"<t{i}>" for i in range(50)]


@pytest.mark.parametrize(("lengths", "expected"), [([1] * 5, [2, 2, 1]), ([9, 3, 4], [1, 2])])
def test_rows_in_parts_of_so_many_rows_and_characters(lengths, expected, monkeypatch):
    monkeypatch.setattr(tables, "CHARACTERS", 7)
    parts = list(tables.in_parts(["x" * length for length in lengths], 2, len))
    assert [len(part) for part in parts] == expected


def test_a_number_that_no_float_reaches_is_not_written_as_another(tmp_path):
    source = put(tmp_path, "a.jsonl", '{"text": "x", "n": 1.5}\n{"text": "y", "n": 1e400}\n')
    with raises_code("invalid", "line 2"):
        answer(source, tmp_path / "b.jsonl")
    assert answer(source, tmp_path / "b.jsonl", skip_bad_rows=True) == 2
    assert "Infinity" not in (tmp_path / "b.jsonl").read_text()


WRONG = {  # (name, content, settings, output): message.
    "no such form": ("a.txt", "x", {}, "b.csv", "invalid: name ends with"),
    "no such form to write": ("a.csv", "text\nx\n", {}, "b.xlsx", "invalid: name ends with"),
    "itself": ("a.csv", "text\nx\n", {}, "a.csv", "conflict: must be another file"),
    "an output that is there": ("a.csv", "text\nx\n", {}, "there.csv", "invalid: exists already"),
    "an empty file": ("a.csv", "", {}, "b.csv", "damaged: is empty"),
    "two of one name": (
        "a.csv",
        "text,text\nx,y\n",
        {},
        "b.csv",
        "invalid: two columns have one name",
    ),
    "an open quote": ("a.csv", 'text\n"x\ny\n', {}, "b.csv", "damaged: Is the file complete"),
    "another encoding": ("a.csv", b"text\n\xff\n", {}, "b.csv", "damaged: Is the file complete"),
    "utf-16": (
        "a.csv",
        "text\nx\n".encode("utf-16"),
        {},
        "b.csv",
        "damaged: begins as utf-16 does",
    ),
    "no encoding": ("a.csv", "text\nx\n", {"encoding": "no"}, "b.csv", "invalid: 'no'"),
    "half a gzip": (
        "a.csv.gz",
        gzip.compress(b"text\n" + b"x\n" * 999)[:-9],
        {},
        "b.csv",
        "damaged: Is the file complete",
    ),
    "no gzip": ("a.csv.gz", b"text\nx\n", {}, "b.csv", "damaged: Is the file complete"),
    "no JSON": ("a.jsonl", '{"text": "x"}\n{', {}, "b.csv", "invalid: line 2"),
    "no object": ("a.jsonl", "[1]", {}, "b.csv", "damaged: a row is a JSON object"),
    "a name twice": (
        "a.jsonl",
        '{"text": "x", "text": "y"}',
        {},
        "b.csv",
        "damaged: must be unique",
    ),
    "no text": ("a.jsonl", '{"text": "x"}\n{"other": "x"}', {}, "b.jsonl", "invalid: line 2"),
    "another column": (
        "a.jsonl",
        '{"text": "x"}\n{"text": "y", "z": 1}',
        {},
        "b.csv",
        "invalid: no column",
    ),
    "a tab": ("a.csv", 'text\n"x\ty"\n', {}, "b.tsv", "invalid: cannot hold its delimiter"),
    "a long delimiter": (
        "a.csv",
        "text\nx\n",
        {"delimiter": "ab"},
        "b.csv",
        "invalid: one character",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_and_nothing_is_left(case, tmp_path, monkeypatch):
    monkeypatch.setattr(table_rows, "FIRST_ROWS", 1)
    name, content, reading, output, message = WRONG[case]
    put(tmp_path, name, content)
    (tmp_path / "there.csv").write_text("mine")
    with raises_code(message):
        answer(tmp_path / name, tmp_path / output, **reading)
    assert sorted(os.listdir(tmp_path)) == sorted([name, "there.csv"])
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_a_file_may_be_replaced_if_one_says_so(tmp_path):
    source = put(tmp_path, "a.csv", "text\nx\n")
    (tmp_path / "b.csv").write_text("old")
    answer(source, tmp_path / "b.csv", overwrite=True)
    assert "<x>" in (tmp_path / "b.csv").read_text()


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_comes_to_be_there_meanwhile(overwrite, links, tmp_path, monkeypatch):
    """It is replaced only by who may; whose answers have no place finds them beside it."""
    source, output = put(tmp_path, "a.csv", "text\nx\n"), tmp_path / "b.csv"

    def late(rows):
        output.write_text("mine")
        return answers_of(rows)

    if not links:
        monkeypatch.setattr(os, "link", _refused)
    if overwrite:
        answer(source, output, answers=late, overwrite=True)
        assert sorted(os.listdir(tmp_path)) == ["a.csv", "b.csv"]
        assert "<x>" in output.read_text()
        return
    with raises_code("occupied", "b.csv") as raised:
        answer(source, output, answers=late)
    assert output.read_text() == "mine"
    (kept,) = set(os.listdir(tmp_path)) - {"a.csv", "b.csv"}
    assert kept in str(raised.value)
    assert "<x>" in (tmp_path / kept).read_text()


def test_a_folder_that_comes_to_be_there_meanwhile(tmp_path):
    """Nobody may replace it by a file; the answers stay."""
    source, output = put(tmp_path, "a.csv", "text\nx\n"), tmp_path / "b.csv"

    def late(rows):
        output.mkdir()
        return answers_of(rows)

    with raises_code("occupied", "b.csv"):
        answer(source, output, answers=late, overwrite=True)
    assert len(os.listdir(tmp_path)) == 3 and output.is_dir()


@pytest.mark.parametrize("links", [True, False])
def test_where_files_have_one_name_only(links, tmp_path, monkeypatch):
    if not links:
        monkeypatch.setattr(os, "link", _refused)
    answer(put(tmp_path, "a.csv", "text\nx\n"), tmp_path / "b.csv")
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "b.csv"]
    assert "<x>" in (tmp_path / "b.csv").read_text()


def _refused(*names):
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_not_replaced(there, tmp_path):
    source, target = put(tmp_path, "a.csv", "text\nx\n"), tmp_path / "target.csv"
    if there:
        target.write_text("mine")
    (tmp_path / "b.csv").symlink_to(target)
    with raises_code("occupied", "target.csv"):
        answer(source, tmp_path / "b.csv", overwrite=True)
    assert (tmp_path / "b.csv").is_symlink() and target.exists() == there


def test_a_missing_file(tmp_path):
    with raises_code("not_found", "a.csv"):
        answer(tmp_path / "a.csv", tmp_path / "b.csv")
    (tmp_path / "a.csv").mkdir()
    with raises_code("invalid", "a.csv"):
        answer(tmp_path / "a.csv", tmp_path / "b.csv")
