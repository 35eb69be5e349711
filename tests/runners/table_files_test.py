"""Files of somebody else in an output folder: a run replaces none of them."""

import json
import os

import pytest

from adapter_bert_tf.output.run_dir import RunDir
from tests.runs import command, train, try_to_train, write_mrpc

pytestmark = pytest.mark.long

ONE_EPOCH = ("--num_train_epochs=1", "--do_eval", "--do_predict")


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("own_files") / "MRPC", rows=16)


@pytest.mark.parametrize(
    "name",
    ["eval_results.txt", "metrics.jsonl", "test_results.tsv", "MRPC.tsv", "eval_classes.tsv"],
)
@pytest.mark.parametrize("more", [(), ("--overwrite",), ("--num_trials=2",)])
def test_what_no_run_wrote_stays(name, more, mrpc, tiny_base_folder, tmp_path):
    (tmp_path / name).write_text("mine")
    said = try_to_train(mrpc, tiny_base_folder, tmp_path, *ONE_EPOCH, *more)
    assert f"{tmp_path}/{name} exists, and no record" in said
    assert os.listdir(tmp_path) == [name] and (tmp_path / name).read_text() == "mine"


def test_a_record_of_something_else_is_no_record(mrpc, tiny_base_folder, tmp_path):
    (tmp_path / "run.json").write_text('{"distance": "10 km"}')
    said = try_to_train(mrpc, tiny_base_folder, tmp_path, *ONE_EPOCH, "--overwrite")
    assert "run.json exists, and no record" in said


def test_what_a_run_replaces_in_its_own_folder_is_said(mrpc, tiny_base_folder, tmp_path, capsys):
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *ONE_EPOCH)
    (out / "MRPC.tsv").write_text("mine")
    train(mrpc, tiny_base_folder, out, *ONE_EPOCH)
    assert f"Replaced: {out}/MRPC.tsv" in capsys.readouterr().out


def test_an_evaluation_that_was_cut_short_goes_on(mrpc, tiny_base_folder, tmp_path, monkeypatch):
    """It leaves results, and no record of them."""
    out = train(mrpc, tiny_base_folder, tmp_path / "out", "--num_train_epochs=1")
    words = ("--task_name=mrpc", f"--data_dir={mrpc}", f"--base_model={tiny_base_folder}")
    asked = (*words, "--do_eval", f"--adapter_dir={out}/adapter", f"--output_dir={tmp_path}/eval")
    with monkeypatch.context() as patched:
        patched.setattr(RunDir, "write_record", None)
        assert "NoneType" in command(*asked)
    assert (tmp_path / "eval" / "eval_results.txt").exists()
    assert command(*asked) is None
    record = json.loads((tmp_path / "eval" / "run.json").read_text())
    assert record["eval"] and "begun" not in record and "later_runs" not in record


def test_the_record_of_evaluations_is_that_of_the_last(mrpc, tiny_base_folder, tmp_path):
    """As `eval_results.txt` is; what the folder holds in addition is added to it."""
    words = ("--task_name=mrpc", f"--data_dir={mrpc}", f"--base_model={tiny_base_folder}")
    for seed in range(2):
        out = train(mrpc, tiny_base_folder, tmp_path / f"{seed}", *ONE_EPOCH, f"--seed={seed}")
        asked = (*words, f"--adapter_dir={out}/adapter", f"--output_dir={tmp_path}/eval")
        for action in ("--do_eval", "--do_predict"):
            assert command(*asked, action) is None
        record = json.loads((tmp_path / "eval" / "run.json").read_text())
        (later,) = record["later_runs"]
        for one, action in ((record, "do_eval"), (later, "do_predict")):
            assert one["flags"][action] and one["flags"]["adapter_dir"] == f"{out}/adapter"
