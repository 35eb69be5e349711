"""The zip for the GLUE server: eleven files, each checked."""

import subprocess
import sys
import zipfile

import pytest

from adapter_bert_tf.tasks import submission
from tests.refusals import raises_code

NAMES = {
    "CoLA": 1063,
    "SST-2": 1821,
    "MRPC": 1725,
    "STS-B": 1379,
    "QQP": 390965,
    "MNLI-m": 9796,
    "MNLI-mm": 9847,
    "QNLI": 5463,
    "RTE": 3000,
    "WNLI": 146,
    "AX": 1104,
}


@pytest.fixture(scope="module")
def predictions(tmp_path_factory):
    """One folder a task, as runs leave them; MNLI's two files in one."""
    root = tmp_path_factory.mktemp("glue")
    for name, (task, rows) in submission.expected_files().items():
        (root / task.name).mkdir(exist_ok=True)
        labels = task.labels or ["2.500", "0.000"]
        lines = [f"{i}\t{labels[i % 2]}" for i in range(rows)]
        (root / task.name / name).write_text("\n".join(["index\tprediction", *lines]) + "\n")
    return root


def test_the_files_and_row_counts():
    assert {
        name.removesuffix(".tsv"): rows for name, (_, rows) in submission.expected_files().items()
    } == NAMES


def test_packs_what_the_runs_left(predictions, tmp_path):
    folders = sorted(map(str, predictions.iterdir()))
    output = tmp_path / "submission.zip"
    printed = subprocess.run(
        [sys.executable, "-m", "adapter_bert_tf.tasks.submission", f"--output={output}", *folders],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "11 files" in printed and "390,965 rows" in printed
    with zipfile.ZipFile(output) as archive:
        assert sorted(archive.namelist()) == sorted(f"{name}.tsv" for name in NAMES)
        assert archive.read("RTE.tsv") == (predictions / "rte" / "RTE.tsv").read_bytes()


def _edit(folder, lines):
    (folder / "WNLI.tsv").write_bytes("\n".join([*lines, ""]).encode("latin-1"))


GOOD = ["index\tprediction", *(f"{i}\t1" for i in range(146))]
BAD = {
    "missing": (None, "not_found: WNLI.tsv"),
    "rows": (GOOD[:-1], "damaged: expected 146 predictions. Received: 145"),
    "label": ([*GOOD[:-1], "145\tentailment"], "damaged: line 147"),
    "index": ([*GOOD[:3], "7\t1", *GOOD[4:]], "damaged: line 4"),
    "header": (GOOD[1:], "damaged: line 1"),
    "encoding": ([*GOOD[:-1], "145\té"], "damaged: is not UTF-8 text"),
    "Windows line ends": ([f"{line}\r" for line in GOOD], "damaged: line 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_the_server_would_refuse(case, predictions, tmp_path):
    lines, message = BAD[case]
    (tmp_path / "wnli").mkdir()
    if lines:
        _edit(tmp_path / "wnli", lines)
    folders = [f for f in predictions.iterdir() if f.name != "wnli"] + [tmp_path / "wnli"]
    with raises_code(message):
        submission.pack(folders, tmp_path / "submission.zip")
    assert not (tmp_path / "submission.zip").exists()


def test_the_same_task_twice(predictions, tmp_path):
    _edit(tmp_path, GOOD)
    with raises_code("conflict", "WNLI.tsv"):
        submission.pack([*predictions.iterdir(), tmp_path], tmp_path / "submission.zip")


def test_constant_predictions_are_noted(predictions, tmp_path):
    _edit(tmp_path, GOOD)
    folders = [f for f in predictions.iterdir() if f.name != "wnli"] + [tmp_path]
    notes = submission.pack(folders, tmp_path / "submission.zip")
    assert sum("all predictions are the same" in line for line in notes) == 1


def test_only_a_submission_is_replaced(predictions, tmp_path):
    folders, output = sorted(map(str, predictions.iterdir())), tmp_path / "a.zip"
    # The second ends as a zip does, with a list of its files that is not there.
    for content in (b"a thesis", b"x" * 60 + b"PK\5\6" + bytes(6) + b"\1\0\xff\0\0\0" + bytes(6)):
        output.write_bytes(content)
        with raises_code("occupied", "a.zip"):
            submission.pack(folders, str(output))
        assert output.read_bytes() == content
    output.unlink()
    for _ in range(2):
        submission.pack(folders, str(output))
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]
