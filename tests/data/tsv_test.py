"""GLUE's files: headers, quoting, byte-order marks, and errors that name file and line."""

import pytest

from adapter_bert_tf.data.tsv import read_split
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks import TASKS, find_task

MRPC = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"


def _write(folder, name, text, encoding="utf-8"):
    (folder / name).write_bytes(text.encode(encoding))
    return str(folder)


def test_mrpc_has_a_mark_a_header_and_bare_quotes(tmp_path):
    rows = '1\t7\t8\t" One\ttwo "\n0\t9\t10\tred\x0cblue\tb\n'
    folder = _write(tmp_path, "train.tsv", MRPC + rows)
    examples = read_split(find_task("MRPC"), folder, "train")
    assert examples.text_a == ['" One', "red\x0cblue"]
    assert examples.text_b == ['two "', "b"]
    assert examples.labels.tolist() == [1, 0]


def test_cola_has_no_header_but_its_test_file_has(tmp_path):
    _write(tmp_path, "dev.tsv", "gj04\t0\t*\tThe cat sat.\ngj04\t1\t\tA dog ran.")
    _write(tmp_path, "test.tsv", "index\tsentence\n0\tIs it?\n5\tIt is.\n")
    task = find_task("CoLA")
    dev, test = read_split(task, str(tmp_path), "dev"), read_split(task, str(tmp_path), "test")
    assert (dev.text_a, dev.text_b, dev.labels.tolist()) == (
        ["The cat sat.", "A dog ran."], None, [0, 1])
    assert (test.text_a, test.labels, test.indices) == (["Is it?", "It is."], None, ["0", "5"])


def test_windows_line_ends(tmp_path):
    folder = _write(tmp_path, "train.tsv", (MRPC + "1\t7\t8\ta\tb\n").replace("\n", "\r\n"))
    assert read_split(find_task("mrpc"), folder, "train").text_b == ["b"]


BAD = {
    "missing": (None, r"No data file .*train.tsv.*found \[\]"),
    "empty": ("", "is empty"),
    "only a header": (MRPC, "no examples"),
    "too few columns": (MRPC + "1\t7\t8\ta\tb\n0\t9\t10\tonly one\n", r"train.tsv, line 3: .*Rec"),
    "unknown label": (MRPC + "1\t7\t8\ta\tb\nmaybe\t9\t10\ta\tb\n",
                      r"line 3: unknown label 'maybe'"),
    "other header": ("id\tx\ty\n1\t2\t3\n", "header has no column"),
    "a blank line": (MRPC + "\n1\t7\t8\ta\tb\n", "line 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case, tmp_path):
    text, message = BAD[case]
    if text is not None:
        _write(tmp_path, "train.tsv", text)
    with pytest.raises(InputError, match=message):
        read_split(find_task("mrpc"), str(tmp_path), "train")


def test_not_utf8(tmp_path):
    folder = _write(tmp_path, "train.tsv", MRPC + "1\t7\t8\tcafé\tb\n", encoding="utf-16")
    with pytest.raises(InputError, match="not UTF-8"):
        read_split(find_task("mrpc"), folder, "train")


def test_unknown_tasks_suggest_the_nearest():
    with pytest.raises(InputError, match="Did you mean mrpc"):
        find_task("mprc")


COUNTS = [("cola", "CoLA", 8551, 1043, 1063), ("mrpc", "MRPC", 3668, 408, 1725)]


@pytest.mark.parametrize(("name", "folder", "train", "dev", "test"), COUNTS)
def test_real_row_counts(real_data, name, folder, train, dev, test):
    path = str(real_data / "glue" / folder)
    sizes = [len(read_split(TASKS[name], path, split)) for split in ("train", "dev", "test")]
    assert sizes == [train, dev, test]


SHIPPED = [("demo_factuality", 520, 180, 40), ("demo_paraphrase", 480, 160, 40)]


@pytest.mark.parametrize(("name", "train", "dev", "test"), SHIPPED)
def test_shipped_data(name, train, dev, test):
    task = TASKS[name]
    splits = {s: read_split(task, task.folder, s) for s in ("train", "dev", "test")}
    assert [len(splits[s]) for s in ("train", "dev", "test")] == [train, dev, test]
    for split in ("train", "dev"):
        assert splits[split].labels.mean() == 0.5


@pytest.mark.parametrize("name", [row[0] for row in SHIPPED])
def test_shipped_splits_share_no_near_duplicates(name):
    task = TASKS[name]
    rows = []
    for split in ("train", "dev", "test"):
        examples = read_split(task, task.folder, split)
        second = examples.text_b or [""] * len(examples)
        rows += [(split, set(f"{a} {b}".lower().split()))
                 for a, b in zip(examples.text_a, second, strict=True)]
    worst = max(len(a & b) / len(a | b) for i, (s, a) in enumerate(rows) for t, b in rows[:i]
                if s != t)
    assert worst < 0.5
