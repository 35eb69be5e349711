"""What an evaluation says of each class."""

import csv

import numpy as np
import pytest

from adapter_bert_tf.runners.classification.result_files import format_table
from adapter_bert_tf.task_types.metrics import class_table
from tests.runs import train, write_mrpc

IDS, PREDICTED = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 0, 0])
BY_HAND = [
    ["label", "precision", "recall", "f1", "examples", "as a", "as b", "as c"],
    ["a", "0.5000", "0.6667", "0.5714", "3", "2", "1", "0"],
    ["b", "0.5000", "0.5000", "0.5000", "2", "1", "1", "0"],
    ["c", "0.0000", "0.0000", "0.0000", "1", "1", "0", "0"],
]


def test_by_hand():
    assert class_table("abc", IDS, PREDICTED) == BY_HAND


def test_where_nothing_is_right():
    """scikit-learn counts with floats there."""
    table = class_table("abc", IDS, (IDS + 1) % 3)
    assert [row[3:5] for row in table[1:]] == [["0.0000", n] for n in "321"]


def test_what_is_shown():
    lines = format_table("Title", BY_HAND).splitlines()
    assert lines[0] == "Title" and lines[2].split() == BY_HAND[1]
    assert len({len(line) for line in lines[1:]}) == 1


@pytest.mark.parametrize(("classes", "lines", "cells"), [(8, 10, 13), (9, 11, 5), (30, 23, 5)])
def test_many_classes_are_cut(classes, lines, cells):
    labels = [f"{'long ' * 9}{i}" for i in range(classes)]
    table = class_table(labels, np.arange(classes), np.arange(classes))
    found = format_table("Title", table).splitlines()
    assert len(found) == lines and max(map(len, found)) < 300
    assert found[1].count("as long") == cells - 5
    assert (found[-1].strip() == "and 10 more") == (classes == 30)


def test_a_run_writes_and_prints_it(tiny_base_folder, tmp_path, capsys):
    mrpc = write_mrpc(tmp_path / "MRPC")
    out = train(mrpc, tiny_base_folder, tmp_path / "out", "--num_train_epochs=1", "--do_eval")
    with (out / "eval_classes.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [(row["label"], row["examples"]) for row in rows] == [("0", "8"), ("1", "8")]
    assert sum(int(row["as 0"]) + int(row["as 1"]) for row in rows) == 16
    right = int(rows[0]["as 0"]) + int(rows[1]["as 1"])
    assert f"eval_accuracy = {right / 16}" in (out / "eval_results.txt").read_text()
    assert "Classes of dev, and what they were taken for:" in capsys.readouterr().out
