"""The page that a run writes at its end."""

import contextlib
import io
import json
import shutil

import pytest

from adapter_bert_tf import report
from adapter_bert_tf.run import result_files
from tests.runs import command, train, write_mrpc
from tests.written_before_test import EXPECTED, GOLDEN

pytestmark = pytest.mark.long

ONCE = ("--num_train_epochs=1", "--do_eval", "--report")


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


@pytest.fixture(scope="module")
def printed():
    """The lines that the run of `finished` prints."""
    return []


@pytest.fixture(scope="module")
def finished(mrpc, tiny_base_folder, tmp_path_factory, printed):
    """The folder of a run; tests must not write to it."""
    out = tmp_path_factory.mktemp("out") / "out"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        again(mrpc, tiny_base_folder, out)
    printed += said.getvalue().splitlines()
    return out


@pytest.fixture
def out(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "out")


def again(mrpc, base, out, *more):
    return train(mrpc, base, out, *ONCE, "--eval_every_steps=4", *more)


def test_a_folder_of_two_lines_is_printed_in_one(tmp_path, monkeypatch, capsys, caplog):
    out = str(tmp_path / "a\nb")
    monkeypatch.setattr(report, "write", lambda folder: f"{folder}/report.html")
    result_files.write_report(out)
    assert capsys.readouterr().out == f"Report: {tmp_path}/a\\nb/report.html\n"
    monkeypatch.setattr(report, "write", lambda folder: 1 // 0)
    result_files.write_report(out)
    assert f"--output_dir={tmp_path}/a\\nb` draws" in caplog.text


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


def test_its_errors_are_those_of_the_file(finished, mrpc):
    lines = (mrpc / "dev.tsv").read_text().split("\n")
    shown = json.loads((finished / "eval_details.json").read_text())["shown"]
    assert shown
    for error in shown:
        label, _, _, *texts = lines[error["line"] - 1].split("\t")
        assert (label, texts) == (error["true"], error["texts"]) != (error["predicted"], texts)


def test_its_place_is_the_last_line(finished, printed):
    assert printed[-2:] == [f"Adapter: {finished}/adapter", f"Report: {finished}/report.html"]
    assert report.build(str(finished)) == (finished / "report.html").read_text()


def test_without_it_the_run_is_the_same(mrpc, tiny_base_folder, out, capsys):
    before = (out / "report.html").stat().st_mtime_ns
    again(mrpc, tiny_base_folder, out, "--noreport")
    assert "holds the results of this very run" in capsys.readouterr().out
    assert (out / "report.html").stat().st_mtime_ns == before
    (out / "report.html").unlink()
    (out / "report.html.0123abcd.tmp").write_text("killed here")
    again(mrpc, tiny_base_folder, out, "--noreport")
    assert not (out / "report.html").exists()
    again(mrpc, tiny_base_folder, out)
    assert capsys.readouterr().out.endswith(f"Report: {out}/report.html\n")
    assert (out / "report.html").exists() and not list(out.glob("*.tmp"))


def test_a_dry_run_writes_none(mrpc, tiny_base_folder, tmp_path, capsys):
    train(mrpc, tiny_base_folder, tmp_path / "out", *ONCE, "--dry_run")
    assert "Report" not in capsys.readouterr().out
    assert not (tmp_path / "out" / "report.html").exists()


def test_a_report_that_fails_costs_nothing(
    mrpc, tiny_base_folder, out, capsys, monkeypatch, caplog
):
    def fail(folder):
        raise ZeroDivisionError("x")

    monkeypatch.setattr(report, "write", fail)
    (out / "report.html").unlink()
    again(mrpc, tiny_base_folder, out, "--overwrite")
    assert "could not be drawn (ZeroDivisionError: x)" in caplog.text
    assert capsys.readouterr().out.endswith(f"Adapter: {out}/adapter\n")
    assert json.loads((out / "run.json").read_text())["eval"]


@pytest.mark.long
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


@pytest.mark.slow
@pytest.mark.long
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


def test_a_finished_sweep_of_an_earlier_version_gets_pages(tmp_path, capsys):
    tree = shutil.copytree(GOLDEN, tmp_path / "before")
    assert command(*EXPECTED["sweep"], "--report", folder=tree) is None
    assert capsys.readouterr().out.endswith("Report: out/sweep/report.html\n")
    page = (tree / "out" / "sweep" / "report.html").read_text()
    assert '<a href="seed%3D0/report.html">' in page and "n = 2 of 2 runs, seeds 0 to 1" in page
    assert len(list((tree / "out" / "sweep").glob("seed=?/report.html"))) == 2
