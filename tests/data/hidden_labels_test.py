"""Labels of several columns of 0 and 1, and labels of -1 that are not known."""

import pytest

from adapter_bert_tf.data.examples import Examples, read_source, without_hidden_labels
from adapter_bert_tf.task_types import table_type
from adapter_bert_tf.tasks import own_task
from tests.refusals import raises_code

COLUMNS = "toxic,insult, threat"
HEADER = "text,toxic,insult,threat,note"


def read(folder, lines, label=COLUMNS, kind="multi_label", split="train", **more):
    (folder / f"{split}.csv").write_text("\n".join(lines) + "\n")
    task = own_task("text", label=label, extension="csv", task_type=kind, **more)
    return read_source(task, task.layouts[0][split], str(folder), table_type(kind))


INDICATORS = {
    "0 and 1": (["a,1,0,1,x", "b,0,0,0,x"], ["toxic|threat", ""]),
    "numbers and truths": (["a,1.0,0.0,True,x", "b,FALSE,,true,x"], ["toxic|threat", "threat"]),
    "hidden": (["a,-1,-1,-1,x", "b,-1.0,-1,-1,x"], ["-1", "-1"]),
}


@pytest.mark.parametrize("case", INDICATORS)
def test_several_columns(case, tmp_path):
    lines, expected = INDICATORS[case]
    assert read(tmp_path, [HEADER, *lines]).labels == expected


def test_columns_by_number_have_the_names_of_the_header(tmp_path):
    assert read(tmp_path, [HEADER, "a,1,0,1,x"], "1,3").labels == ["toxic|threat"]


def test_a_column_whose_name_has_a_comma(tmp_path):
    assert read(tmp_path, ['text,"a,b"', "t,x|y"], "a,b").labels == ["x|y"]


def test_a_test_file_may_lack_the_columns(tmp_path):
    assert read(tmp_path, ["text,note", "a,x"], split="test").labels is None


def test_a_label_that_no_row_has_is_said(tmp_path, caplog):
    read(tmp_path, [HEADER, "a,1,0,1,x"])
    assert "train.csv: no row has the label 'insult'" in caplog.text


REFUSED = {
    "neither 0 nor 1": (HEADER, "a,1,0,2,x", COLUMNS, "invalid: line 2", "'threat'"),
    "a missing column": (HEADER, "a,1,0,1,x", "toxic,other", "invalid: 'other'", "'insult'"),
    "a name with a bar": ("text,a|b,c", "t,1,0", "a|b,c", "invalid: 'a|b'", "'|'"),
    "too few cells": (HEADER, "a,1,0", COLUMNS, "invalid: line 2", "skip_bad_rows=True"),
    "one label": (HEADER, "a,1,0,1,x", COLUMNS, "invalid: 'toxic,insult, threat'", ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_columns(case, tmp_path):
    header, line, label, error, name = REFUSED[case]
    kind = "classification" if case == "one label" else "multi_label"
    with raises_code(error, name):
        read(tmp_path, [header, line], label, kind)


HIDDEN = {
    "all": (["-1", "-1"], ("0", "1"), None),
    "all, as scores": (["-1.0", "-1.0"], (), None),
    "all, empty": (["", ""], ("0", "1"), None),  # Of any number of labels, none is a label set.
    "some": (["-1", "1"], ("0", "1"), ["-1", "1"]),
    "some empty": (["", "1"], ("0", "1"), ["", "1"]),
    "a label of the task": (["-1", "-1"], ("-1", "1"), ["-1", "-1"]),
    "none known": (None, ("0", "1"), None),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_labels_of_a_test_file_that_are_hidden(case, caplog):
    labels, known, expected = HIDDEN[case]
    examples = Examples(["a", "b"], None, labels, ["0", "1"], [("f", 1), ("f", 2)])
    assert without_hidden_labels(examples, "test", known).labels == expected
    assert ("test: all labels are" in caplog.text) == (labels != expected)


CLASSES = {("-1", "0", "1", "2"): True, ("-1", "0", "1"): False, ("-1", "1"): False}


@pytest.mark.parametrize("labels", CLASSES)
def test_a_class_of_minus_one_is_said(labels, caplog):
    table_type("classification").check_inferred(labels)
    assert ("-1 counts as a class" in caplog.text) == CLASSES[labels]
