"""The page that a run writes at its end."""

import json
import shutil

import pytest

from adapter_bert_tf import report
from adapter_bert_tf.errors import InputError
from tests.runs import train, write_mrpc

ONCE = ("--num_train_epochs=1", "--do_eval", "--report")


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


@pytest.fixture(scope="module")
def finished(mrpc, tiny_base_folder, tmp_path_factory):
    """The folder of a run; tests must not write to it."""
    out = tmp_path_factory.mktemp("out") / "out"
    return train(mrpc, tiny_base_folder, out, *ONCE, "--eval_every_steps=4")


@pytest.fixture
def out(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "out")


def again(mrpc, base, out, *more):
    return train(mrpc, base, out, *ONCE, "--eval_every_steps=4", *more)


def test_it_holds_what_the_run_found(finished):
    page = (finished / "report.html").read_text()
    record = json.loads((finished / "run.json").read_text())
    details = json.loads((finished / "eval_details.json").read_text())
    assert f"{record['eval']['eval_accuracy']:.4f}" in page
    assert record["chosen_by"] == ["eval_accuracy"]
    assert (
        sum(part for part, _ in record["parameters"]["groups"].values())
        == (record["parameters"]["trained"])
    )
    assert (
        sum(whole for _, whole in record["parameters"]["groups"].values())
        == (record["parameters"]["total"])
    )
    right = 1 - details["errors"] / details["examples"]
    assert right == pytest.approx(record["eval"]["eval_accuracy"])
    assert sum(one["count"] for one in details["calibration"]["bins"]) == 16
    lines = (finished.parents[1] / "x").parent
    assert lines.exists()


def test_its_errors_are_those_of_the_file(finished, mrpc):
    lines = (mrpc / "dev.tsv").read_text().split("\n")
    shown = json.loads((finished / "eval_details.json").read_text())["shown"]
    assert shown
    for error in shown:
        label, _, _, *texts = lines[error["line"] - 1].split("\t")
        assert (label, texts) == (error["true"], error["texts"]) != (error["predicted"], texts)


def test_its_place_is_the_last_line(mrpc, tiny_base_folder, out, capsys):
    again(mrpc, tiny_base_folder, out, "--overwrite", "--learning_rate=1e-2")
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == [f"Adapter: {out}/adapter", f"Report: {out}/report.html"]
    assert report.build(str(out)) == (out / "report.html").read_text()


def test_without_it_the_run_is_the_same(mrpc, tiny_base_folder, out, capsys):
    before = (out / "report.html").stat().st_mtime_ns
    again(mrpc, tiny_base_folder, out, "--noreport")
    assert "holds the results of this very run" in capsys.readouterr().out
    assert (out / "report.html").stat().st_mtime_ns == before
    (out / "report.html").unlink()
    again(mrpc, tiny_base_folder, out, "--noreport")
    assert not (out / "report.html").exists()
    again(mrpc, tiny_base_folder, out)
    assert capsys.readouterr().out.endswith(f"Report: {out}/report.html\n")
    assert (out / "report.html").exists()


def test_a_dry_run_writes_none(mrpc, tiny_base_folder, tmp_path, capsys):
    train(mrpc, tiny_base_folder, tmp_path / "out", *ONCE, "--dry_run")
    assert "Report" not in capsys.readouterr().out
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("error", [InputError("a figure"), ZeroDivisionError("x")])
def test_a_report_that_fails_costs_nothing(
    error, mrpc, tiny_base_folder, out, capsys, monkeypatch, caplog
):
    def fail(folder):
        raise error

    monkeypatch.setattr(report, "write", fail)
    (out / "report.html").unlink()
    again(mrpc, tiny_base_folder, out, "--overwrite")
    assert f"could not be drawn ({type(error).__name__}" in caplog.text
    assert capsys.readouterr().out.endswith(f"Adapter: {out}/adapter\n")
    assert json.loads((out / "run.json").read_text())["eval"]


def test_details_that_are_gone_are_made_again(mrpc, tiny_base_folder, out, capsys):
    before = (out / "eval_details.json").read_bytes()
    (out / "eval_details.json").unlink()
    again(mrpc, tiny_base_folder, out)
    assert f"so made again: {out}/eval_details.json" in capsys.readouterr().out
    assert (out / "eval_details.json").read_bytes() == before


def test_a_folder_in_its_place_is_refused_before_training(mrpc, tiny_base_folder, tmp_path):
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    with pytest.raises(AssertionError, match=r"report\.html is a folder"):
        train(mrpc, tiny_base_folder, tmp_path / "out", *ONCE)


def test_a_sweep_has_a_page_that_leads_to_those_of_its_runs(
    mrpc, tiny_base_folder, tmp_path, capsys
):
    out = tmp_path / "out"
    train(mrpc, tiny_base_folder, out, *ONCE, "--num_trials=2", "--do_predict")
    assert capsys.readouterr().out.endswith(f"Report: {out}/report.html\n")
    page = (out / "report.html").read_text()
    for seed in (0, 1):
        assert f'<a href="seed%3D{seed}/report.html">' in page
        assert (out / f"seed={seed}" / "report.html").exists()
    results = dict(
        line.split(" = ") for line in (out / "eval_results.txt").read_text().splitlines()
    )
    assert f"{float(results['eval_accuracy_min']):.4f} to" in page
