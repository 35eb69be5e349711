"""GLUE's rows: a development file of each task as published, and what the server gets."""

import numpy as np
import pytest

from adapter_bert_tf.data.examples import read_examples
from adapter_bert_tf.runners.classification.result_files import write_predictions
from adapter_bert_tf.tasks import GLUE, find_task
from tests.support import encoded

# Task: (file, header, a row, texts, label id or score). One row a task.
ROWS = {
    "cola": ("dev.tsv", None, "gj04\t1\t\tA b.", ("A b.",), 1),
    "sst-2": ("dev.tsv", "sentence\tlabel", "a b \t0", ("a b ",), 0),
    "mrpc": (
        "dev.tsv",
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        '1\t7\t8\t"a\tb',
        ('"a', "b"),
        1,
    ),
    "sts-b": (
        "dev.tsv",
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        "0\tg\tf\ty\to\ts\ts\ta\tb\t3.250",
        ("a", "b"),
        3.25,
    ),
    "qqp": (
        "dev.tsv",
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        "9\t1\t2\ta\tb\t1",
        ("a", "b"),
        1,
    ),
    "mnli": (
        "dev_mismatched.tsv",
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\t"
        "sentence2_binary_parse\tsentence1_parse\tsentence2_parse\tsentence1\tsentence2\t"
        "label1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label",
        "0\t1\t2\tg\t(a)\t(b)\t(a)\t(b)\ta\tb\tneutral\t\t\t\t\tneutral",
        ("a", "b"),
        2,
    ),
    "qnli": (
        "dev.tsv",
        "index\tquestion\tsentence\tlabel",
        "0\ta\tb\tnot_entailment",
        ("a", "b"),
        1,
    ),
    "rte": ("dev.tsv", "index\tsentence1\tsentence2\tlabel", "0\ta\tb\tentailment", ("a", "b"), 0),
    "wnli": ("dev.tsv", "index\tsentence1\tsentence2\tlabel", "0\ta\tb\t1", ("a", "b"), 1),
    "ax": ("diagnostic.tsv", "index\tsentence1\tsentence2", "0\ta\tb", ("a", "b"), None),
}


def test_every_task_has_a_row():
    assert {task.name for task in GLUE} == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_rows_as_published(name, tmp_path):
    file, header, row, texts, label = ROWS[name]
    for other in ("dev_matched.tsv", file):
        (tmp_path / other).write_text("\n".join(filter(None, [header, row])) + "\n")
    task = find_task(name)
    read = read_examples(task, str(tmp_path), ["test" if label is None else "dev"])
    *_, examples = read.values()
    assert examples.texts() == [texts]
    ids = encoded(task, examples)
    assert ids is None if label is None else ids.tolist() == [label]


PREDICTED = {
    "rte": ([[0.2, 0.8], [0.9, 0.1]], ["0\tnot_entailment", "1\tentailment"]),
    "mrpc": ([[0.2, 0.8], [0.9, 0.1]], ["0\t1", "1\t0"]),
    "ax": ([[0, 0, 1], [1, 0, 0]], ["0\tneutral", "1\tcontradiction"]),
    "sts-b": ([5.7, -0.2], ["0\t5.000", "1\t0.000"]),
}


@pytest.mark.parametrize("name", PREDICTED)
def test_submission_files(name, tmp_path):
    predicted, lines = PREDICTED[name]
    task = find_task(name)
    write_predictions(str(tmp_path), task, "test", ["0", "1"], np.array(predicted, "f4"))
    text = (tmp_path / f"{task.title}.tsv").read_text()
    assert text.splitlines() == ["index\tprediction", *lines]
    raw = (tmp_path / "test_results.tsv").read_text().splitlines()
    assert np.array([line.split("\t") for line in raw], "f4").reshape(
        np.shape(predicted)
    ) == pytest.approx(np.array(predicted))
