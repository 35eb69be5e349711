"""JSON lines and Parquet are training data as tables are; `predict` answers them."""

import datetime
import gzip
import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from adapter_bert_tf.data.examples import read_source
from adapter_bert_tf.data.tables.blocks import read_blocks
from adapter_bert_tf.data.tables.malformed_rows import RowFindings
from adapter_bert_tf.runners.classification.table_files import own_files
from adapter_bert_tf.task_types import table_type
from adapter_bert_tf.tasks import own_task
from tests.predict.tables_test import answer
from tests.refusals import raises_code

ROWS = [
    {"id": 1, "text": 'a "b"\n;c', "label": 1},
    {"id": 2, "text": "d", "label": None},
    {"id": 3, "text": "e\tf", "label": 0},
]


def write(folder, rows, ending):
    path = folder / f"train.{ending}"
    text = "".join(json.dumps(row, default=str) + "\n" for row in rows)
    if ending == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    return path


def read(folder, ending, label="label", kind="classification", **more):
    extension = ending.removesuffix(".gz")
    task = own_task("text", label=label, extension=extension, task_type=kind, **more)
    return read_source(task, task.layouts[0]["train"], str(folder), table_type(kind))


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_rows_are_read(ending, tmp_path, caplog):
    write(tmp_path, ROWS, ending)
    assert own_files(str(tmp_path)) == (ending.removesuffix(".gz"), "train")
    examples = read(tmp_path, ending)
    assert examples.text_a == ['a "b"\n;c', "e\tf"]
    assert examples.labels == ["1", "0"]  # The row without a label is left out, and counted.
    assert [line for _, line in examples.places] == [1, 3]
    assert "left out 1 of 3 rows: no label" in caplog.text


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_lists_are_several_labels(ending, tmp_path):
    rows = [{"text": "a", "labels": ["x", "y"]}, {"text": "b", "labels": []}]
    write(tmp_path, rows, ending)
    assert read(tmp_path, ending, "labels", "multi_label").labels == ["x|y", ""]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_label_of_several_is_not_divided(ending, tmp_path):
    write(tmp_path, [{"text": "a", "labels": ["x"]}, {"text": "b", "labels": ["y|z", "x"]}], ending)
    with raises_code("invalid: line 2: A label of several must not hold '|'"):
        read(tmp_path, ending, "labels", "multi_label")


def test_half_of_a_surrogate_pair_is_a_question_mark(tmp_path):
    """Texts and labels that were cut within an emoji."""
    write(
        tmp_path, [{"text": "a \ud83d", "label": "x\ud83d"}, {"text": "b", "label": "y"}], "jsonl"
    )
    examples = read(tmp_path, "jsonl")
    assert examples.text_a == ["a ?", "b"] and examples.labels == ["x?", "y"]
    source = own_task("text", label="label", extension="jsonl").layouts[0]["train"]
    blocks = read_blocks(source, str(tmp_path), RowFindings("train.jsonl"))
    assert [cells for block in blocks for _, cells in block.rows] == [["a ?", "x?"], ["b", "y"]]


MALFORMED = {
    "no text": ('{"label": 1}', "invalid: line 2"),
    "null": ('{"text": null, "label": 1}', "invalid: line 2"),
    "no object": ("[1]", "invalid: line 2"),
    "no JSON": ("{", "invalid: line 2"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_rows_are_errors_or_left_out(case, tmp_path):
    line, error = MALFORMED[case]
    first, last = '{"text": "a", "label": 1}', '{"label": 0, "text": "b"}'
    (tmp_path / "train.jsonl").write_text(f"{first}\n{line}\n{last}\n")
    with raises_code(error, "skip_bad_rows=True"):
        read(tmp_path, "jsonl")
    assert read(tmp_path, "jsonl", skip_bad_rows=True).text_a == ["a", "b"]


def test_a_damaged_parquet_file(tmp_path):
    content = write(tmp_path, ROWS, "parquet").read_bytes()
    (tmp_path / "train.parquet").write_bytes(content[:-20])
    with raises_code("damaged: train.parquet"):
        read(tmp_path, "parquet")
    with raises_code("damaged: train.parquet"):
        answer(tmp_path / "train.parquet", tmp_path / "out.csv")


@pytest.mark.parametrize("ending", ["csv", "jsonl.gz"])
def test_predict_answers_parquet(ending, tmp_path):
    path = write(tmp_path, ROWS, "parquet")
    assert answer(path, tmp_path / f"out.{ending}") == 3
    with raises_code("invalid: .parquet"):
        answer(path, tmp_path / "out.parquet")
    assert answer(tmp_path / f"out.{ending}", tmp_path / "again.jsonl") == 3
    row = json.loads((tmp_path / "again.jsonl").read_text().splitlines()[0])
    texts = {"text": 'a "b"\n;c', "predicted_label": '<a "b"\n;c>'}
    assert row | texts == row and str(row["id"]) == str(row["label"]) == "1"


def write_bytes_columns(folder, texts):
    """A file as Hive, Impala and older Spark write texts."""
    path = folder / "train.parquet"
    columns = {"text": texts, "label": [b"no"] * len(texts)}
    arrays = {name: pyarrow.array(v, pyarrow.binary()) for name, v in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table(arrays), path)
    return path


def test_bytes_of_parquet_are_texts(tmp_path):
    path = write_bytes_columns(tmp_path, ["né".encode(), b"x"])
    examples = read(tmp_path, "parquet")
    assert (examples.text_a, examples.labels) == (["né", "x"], ["no", "no"])
    answer(path, tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [line.rpartition(",")[0] for line in lines[1:]] == ["né,no,<né>", "x,no,<x>"]


def test_bytes_that_are_no_text_are_a_malformed_row(tmp_path):
    path = write_bytes_columns(tmp_path, [b"x", b"\xff"])
    with raises_code("invalid", "line 2", "UTF-8"):
        read(tmp_path, "parquet")
    assert read(tmp_path, "parquet", skip_bad_rows=True).text_a == ["x"]
    with raises_code("invalid", "line 2", "UTF-8"):
        answer(path, tmp_path / "out.csv")
    assert answer(path, tmp_path / "out.csv", skip_bad_rows=True) == 2


FILES = {  # Names in a folder: extension and name of the training data.
    "a table": (["train.csv", "notes.jsonl"], ("csv", "train")),
    "an old table next to objects": (["train.tsv", "train.jsonl"], ("tsv", "train")),
    "one of any name": (["reviews.parquet", "README.md"], ("parquet", "reviews")),
    "dev alone": (["dev.jsonl.gz"], ("jsonl", "train")),
    "nothing": (["README.md"], ("tsv", "train")),
}


@pytest.mark.parametrize("case", FILES)
def test_the_files_of_a_folder(case, tmp_path):
    names, expected = FILES[case]
    for name in names:
        (tmp_path / name).touch()
    assert own_files(str(tmp_path)) == expected


def test_two_kinds_of_objects(tmp_path):
    for name in ("train.jsonl", "dev.parquet"):
        (tmp_path / name).touch()
    with raises_code("conflict", ".jsonl and .parquet"):
        own_files(str(tmp_path))


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_number_for_each_label_is_refused(ending, tmp_path):
    write(tmp_path, [{"text": "a", "label": [1, 0, 0, 1]}], ending)
    with raises_code("invalid", "line 1", "label_column=A,B"):
        read(tmp_path, ending, kind="multi_label")


@pytest.mark.parametrize("labels", [["0", "1"], [3, 7], ["a", "b", "a"], []])
def test_lists_of_labels_are_read(labels, tmp_path):
    write(tmp_path, [{"text": "a", "label": labels}, {"text": "b", "label": ["x"]}], "jsonl")
    examples = read(tmp_path, "jsonl", kind="multi_label")
    assert examples.labels[-1] == "x"


def test_a_list_of_words_is_one_text_in_training_and_prediction(tmp_path):
    rows = [{"text": ["the", "cat"], "label": 1}, {"text": "a dog", "label": 0}]
    write(tmp_path, rows, "jsonl")
    assert read(tmp_path, "jsonl").text_a == ["the cat", "a dog"]
    answer(tmp_path / "train.jsonl", tmp_path / "o.jsonl")  # Its labels are the texts in < and >.
    rows = map(json.loads, (tmp_path / "o.jsonl").read_text().splitlines())
    assert [row["predicted_label"] for row in rows] == ["<the cat>", "<a dog>"]


def test_a_list_in_a_cell_of_a_table_is_refused():
    """As pandas writes a column of lists to CSV."""
    kind = table_type("multi_label")
    task = own_task("text", label="label", task_type="multi_label").with_labels(
        ["[0, 1]", "[1, 0]"]
    )
    with raises_code("invalid", "'[0, 1]'", "--label_column=A,B"):
        kind.check_training(task, np.eye(2))


def test_a_date_is_a_text_without_quotes(tmp_path):
    rows = [{"text": "a", "label": datetime.date(2020, 1, day)} for day in (2, 3)]
    write(tmp_path, rows, "parquet")
    assert read(tmp_path, "parquet").labels == ["2020-01-02", "2020-01-03"]
