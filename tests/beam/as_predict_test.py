"""A job and `predict` treat the same file alike: its rows, its columns, their names."""

import csv
import io
import json

import pytest

from adapter_bert_tf.predict.predictor import Predictor
from tests.beam.job_test import score
from tests.predict.predictor_test import BASE, SCORES

FILES = {  # Name, content, reading, the column of the text.
    "quoted cells without text": ("a.csv", 'text\nx\n""\n\ny\n""\n', {}, "text"),
    "keys of later objects": (
        "a.jsonl",
        '{"id": 1}\n{"text": "x"}\n{"text": "y", "score": 1, "source_file": "z"}\n',
        {},
        "text",
    ),
    "rows of other widths": ("a.csv", "1,x,p\n2,y\n3\n4,z,q,r\n", {"header": False}, "1"),
    "a carriage return in a line": ("a.tsv", "text\tid\nx\ry\t1\nz\t2\n", {}, "text"),
    "quoted cells": ("a.tsv", 'text\tid\n"x\ty"\t1\n', {"quoted": True}, "text"),
    "quotes that are text": ("a.csv", 'text,id\n"x,1\nan "y",2\n', {"quoted": False}, "text"),
}


def rows_of(path):
    """The cells of each line, that of the names, too; of JSON lines the keys and values."""
    text = path.read_bytes().decode()
    if path.suffix == ".jsonl":
        return [list(json.loads(line).items()) for line in text.splitlines()]
    delimiter = "," if path.suffix == ".csv" else "\t"
    return list(csv.reader(io.StringIO(text.replace("\r", "<return>")), delimiter=delimiter))


@pytest.mark.parametrize("ending", [None, ".csv", ".jsonl"])
@pytest.mark.parametrize("case", FILES)
def test_rows_columns_and_names(case, ending, tmp_path):
    name, content, reading, column = FILES[case]
    source = tmp_path / "in" / name
    source.parent.mkdir()
    source.write_bytes(content.encode())
    alone = tmp_path / f"alone{ending or source.suffix}"
    columns = {"text_a_column": column, "text_b_column": None}
    predictor = Predictor(SCORES, base=BASE, batch_size=4)
    count = predictor.predict_file(source, alone, skip_bad_rows=True, **columns, **reading)
    summary = score(source, tmp_path / "out", (SCORES,), ending=ending, reading=reading, **columns)
    (shard,) = (tmp_path / "out").glob("a-*")
    answered = [row for row in rows_of(alone) if row[-1] and row[-1][-1]]
    # The file and the number of a row are between its cells and its score.
    assert [[*row[:-3], row[-1]] for row in rows_of(shard)] == answered
    assert summary["rows"] == count
    assert summary["bad_rows"] == len(rows_of(alone)) - len(answered)
