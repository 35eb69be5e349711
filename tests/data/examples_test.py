"""GLUE's files and others: headers, marks, layouts, divisions, errors that name file and line."""

import numpy as np
import pytest

from adapter_bert_tf.data.examples import limit, read_examples
from adapter_bert_tf.data.labels import infer_labels
from adapter_bert_tf.task_types import table_type
from adapter_bert_tf.tasks import TASKS, find_task, own_task
from tests.refusals import raises_code
from tests.support import encoded

MRPC = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
SPLITS = ("train", "dev", "test")


def _write(folder, name, text):
    (folder / name).write_bytes(text.encode())
    return str(folder)


def _read(task, folder, *roles):
    return read_examples(find_task(task), str(folder), roles)


def test_mrpc_has_a_mark_a_header_and_bare_quotes(tmp_path):
    rows = '1\t7\t8\t" One\ttwo "\n0\t9\t10\tred\x0cblue\tb\n'
    _write(tmp_path, "train.tsv", MRPC + rows)
    examples = _read("MRPC", tmp_path, "train")["train"]
    assert examples.text_a == ['" One', "red\x0cblue"]
    assert examples.text_b == ['two "', "b"]
    assert encoded(find_task("mrpc"), examples).tolist() == [1, 0]


def test_cola_has_no_header_but_its_test_file_has(tmp_path):
    _write(tmp_path, "dev.tsv", "gj04\t0\t*\tThe cat sat.\ngj04\t1\t\tA dog ran.")
    _write(tmp_path, "test.tsv", "index\tsentence\n0\tIs it?\n5\tIt is.\n")
    read = _read("CoLA", tmp_path, "dev", "test")
    assert read["dev"].texts() == [("The cat sat.",), ("A dog ran.",)]
    assert read["dev"].labels == ["0", "1"]
    test = read["test"]
    assert (test.text_a, test.labels, test.indices) == (["Is it?", "It is."], None, ["0", "5"])


def test_sts_b_has_scores(tmp_path):
    header = "index\tgenre\tsource1\tsource2\tsentence1\tsentence2\tscore"
    _write(tmp_path, "dev.tsv", f"{header}\n0\tg\ts\ts\ta\tb\t3.250\n")
    task = find_task("sts-b")
    scores = encoded(task, _read("sts-b", tmp_path, "dev")["dev"])
    assert scores.dtype == np.float32 and scores.tolist() == [3.25]


def test_qqp_skips_short_rows(tmp_path, caplog):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
    _write(tmp_path, "train.tsv", f'{header}\n1\t2\t3\tWhat is ""x""?\tb\t1\n4\t5\t6\tcut\n')
    train = _read("qqp", tmp_path, "train")["train"]
    assert train.texts() == [('What is ""x""?', "b")]
    assert "left out 1 of 2 rows: too few cells" in caplog.text


def test_mnli_has_two_development_sets(tmp_path):
    header = "index\tsentence1\tsentence2\tgold_label"
    for name, label in (("matched", "neutral"), ("mismatched", "entailment")):
        _write(tmp_path, f"dev_{name}.tsv", f"{header}\n0\ta\tb\t{label}\n")
    read = _read("mnli", tmp_path, "dev")
    assert {split: part.labels for split, part in read.items()} == {
        "dev": ["neutral"],
        "dev_mismatched": ["entailment"],
    }


BAD = {
    "missing": (None, "not_found: train.tsv"),
    "empty": ("", "damaged: is empty"),
    "only a header": (MRPC, "invalid: no examples"),
    "too few columns": (MRPC + "1\t7\t8\ta\tb\n0\t9\t10\tonly one\n", "invalid: train.tsv, line 3"),
    "unknown label": (
        MRPC + "1\t7\t8\ta\tb\nmaybe\t9\t10\ta\tb\n",
        "invalid: line 3",
    ),
    "other header": ("id\tx\ty\n1\t2\t3\n", "invalid: header has no column"),
    "Excel's line": ("sep=;\n" + MRPC + "1\t7\t8\ta\tb\n", "invalid: first line is"),
    "a blank line": (MRPC + "\n1\t7\t8\ta\tb\n", "invalid: line 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case, tmp_path):
    text, message = BAD[case]
    if text is not None:
        _write(tmp_path, "train.tsv", text)
    with raises_code(message):
        encoded(find_task("mrpc"), _read("mrpc", tmp_path, "train")["train"])


SCORES = table_type("regression")
SCORED = own_task("text", label="label", task_type="regression")


@pytest.mark.parametrize("score", ["many", "1_0", "\u0661\u0662", "0x1", "1e", ".", "nan", "inf"])
def test_a_score_that_is_no_number(score, tmp_path):
    _write(tmp_path, "train.tsv", f"text\tlabel\na\t1.5\nb\t{score}\n")
    examples = read_examples(SCORED, str(tmp_path), ["train"], cells=SCORES)["train"]
    with raises_code("invalid", "train.tsv, line 3", f"'{score}'"):
        encoded(SCORED, examples)


def test_scores_in_all_ways_to_write_a_number(tmp_path):
    cells = ["1", "-2.5", "+.5", "3.", " 4 ", "1e-2", "2E+3"]
    _write(tmp_path, "train.tsv", "text\tlabel\n" + "".join(f"a\t{cell}\n" for cell in cells))
    examples = read_examples(SCORED, str(tmp_path), ["train"], cells=SCORES)["train"]
    expected = np.array([1, -2.5, 0.5, 3, 4, 0.01, 2000], np.float32)
    np.testing.assert_array_equal(encoded(SCORED, examples), expected)


def test_what_a_task_does_not_have(tmp_path):
    with raises_code("invalid", "'ax'"):
        _read("ax", tmp_path, "train")


def test_a_development_share_where_there_is_no_file(tmp_path):
    rows = "".join(f"text {i}\t{i % 3}\n" for i in range(200))
    folder = _write(tmp_path, "train.tsv", f"text\tlabel\n{rows}")
    task = own_task("text", label="label")
    read = read_examples(task, folder, ["train", "dev"], split_seed=1)
    assert [len(read[split]) for split in ("train", "dev")] == [180, 20]
    assert not set(read["train"].texts()) & set(read["dev"].texts())
    assert read_examples(task, folder, ["dev"], split_seed=1)["dev"] == read["dev"]
    assert read_examples(task, folder, ["dev"], split_seed=2)["dev"] != read["dev"]
    _write(tmp_path, "dev.tsv", "text\tlabel\nmore\t1\n")
    read = read_examples(task, folder, ["train", "dev"])
    assert [len(read[split]) for split in ("train", "dev")] == [200, 1]


def test_numbers_are_sorted_as_numbers():
    assert infer_labels(["10", "9", "-1", "10"]) == ("-1", "9", "10")
    assert infer_labels(["b", "10", "9"]) == ("10", "9", "b")
    assert infer_labels(["01", "1", "2", "-0", "0"]) == ("0", "1", "2")
    assert infer_labels(["²", "--1", "1"]) == ("--1", "1", "²")


def test_limit_is_stratified_for_classes_and_plain_for_scores(tmp_path):
    rows = "".join(f"text {i}\t{i % 4 // 3}\n" for i in range(400))
    folder = _write(tmp_path, "train.tsv", f"text\tlabel\n{rows}")
    _write(tmp_path, "dev.tsv", "text\tlabel\na\t1\n")
    task = own_task("text", label="label")
    for name in ("classification", "regression"):
        cells = table_type(name)
        examples = read_examples(task, folder, ["train"], cells=cells)["train"]
        assert limit(examples, None, 0, cells) is limit(examples, 999, 0, cells) is examples
        some = limit(examples, 100, 0, cells)
        assert len(some) == 100
        assert name == "regression" or some.labels.count("1") == 25


def test_unknown_tasks_suggest_the_nearest():
    with raises_code("invalid", "mrpc"):
        find_task("mprc")


@pytest.mark.parametrize("name", ["STS-B", "sts-b", "stsb", "sts_b"])
def test_tasks_are_found_however_they_are_spelled(name):
    assert find_task(name).title == "STS-B"


COUNTS = {
    "cola": ("CoLA", {"train": 8551, "dev": 1043, "test": 1063}),
    "mrpc": ("MRPC", {"train": 3668, "dev": 408, "test": 1725}),
    "rte": ("RTE", {"train": 2490, "dev": 277, "test": 3000}),
    "sts-b": ("STS-B", {"train": 5749, "dev": 1500, "test": 1379}),
    "qnli": ("QNLI", {"dev": 5463, "test": 5463}),
    "ax": ("AX", {"test": 1104}),
    "mnli": ("MNLI-subset", {"train": 6102, "dev": 1074, "dev_mismatched": 1000}),
    "qqp": ("QQP-subset", {"train": 9928, "dev": 9917}),
}


@pytest.mark.parametrize("name", COUNTS)
def test_real_row_counts(real_data, name):
    folder, counts = COUNTS[name]
    roles = [role for role in SPLITS if role in counts]
    read = read_examples(TASKS[name], str(real_data / "glue" / folder), roles)
    assert {split: len(part) for split, part in read.items()} == counts
    for part in read.values():
        encoded(TASKS[name], part)


SHIPPED = [("demo_factuality", 520, 180, 40), ("demo_paraphrase", 480, 160, 40)]


@pytest.mark.parametrize(("name", "train", "dev", "test"), SHIPPED)
def test_shipped_data(name, train, dev, test):
    splits = read_examples(TASKS[name], TASKS[name].folder, SPLITS)
    assert [len(splits[s]) for s in SPLITS] == [train, dev, test]
    for split in ("train", "dev"):
        assert encoded(TASKS[name], splits[split]).mean() == 0.5


@pytest.mark.parametrize("name", [row[0] for row in SHIPPED])
def test_shipped_splits_share_no_near_duplicates(name):
    rows = []
    for split, examples in read_examples(TASKS[name], TASKS[name].folder, SPLITS).items():
        rows += [(split, set(" ".join(texts).lower().split())) for texts in examples.texts()]
    worst = max(
        len(a & b) / len(a | b) for i, (s, a) in enumerate(rows) for t, b in rows[:i] if s != t
    )
    assert worst < 0.5
