"""A finished run whose results are gone, damaged or another's is not taken for finished."""

import json
import shutil
import sys
import types

import pytest

from adapter_bert_tf.output.provenance import command as command_line
from tests import support
from tests.runs import command, train, write_mrpc

pytestmark = pytest.mark.long

ALL = ("--num_train_epochs=1", "--do_eval", "--do_predict", "--do_export")
WHOLE = ("eval_results.txt", "MRPC.tsv", "test_results.tsv", "adapter/adapter.safetensors")


def _remove(path):
    (shutil.rmtree if path.is_dir() else type(path).unlink)(path)


DAMAGE = {
    "no predictions": ("MRPC.tsv", _remove),
    "no probabilities": ("test_results.tsv", _remove),
    "no evaluation": ("eval_results.txt", _remove),
    "predictions of another": ("MRPC.tsv", lambda path: path.write_text("index\tprediction\n")),
    "a damaged adapter": ("adapter/adapter.safetensors", lambda path: path.write_bytes(b"x" * 9)),
    "no SavedModel": ("saved_model", _remove),
    "no weights of it": ("saved_model/variables/variables.index", _remove),
    "weights cut short": (
        "saved_model/variables/variables.data-00000-of-00001",
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
    ),
}

OFTEN = ("no SavedModel", "a damaged adapter")


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


@pytest.fixture(scope="module")
def finished(mrpc, tiny_base_folder, tmp_path_factory):
    """The folder of a run; tests must not write to it."""
    return train(mrpc, tiny_base_folder, tmp_path_factory.mktemp("out") / "out", *ALL)


@pytest.fixture
def out(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "out")


def _contents(out):
    return {name: (out / name).read_bytes() for name in WHOLE}


def test_what_is_whole_is_not_made_again(mrpc, tiny_base_folder, out, capsys):
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    (out / "adapter" / "README.md").write_text("My own words.")
    (out / "notes.txt").write_text("Mine.")
    train(mrpc, tiny_base_folder, out, *ALL)
    assert "holds the results of this very run" in capsys.readouterr().out
    del before[out / "adapter" / "README.md"]
    assert before == {path: path.stat().st_mtime_ns for path in before}


@pytest.mark.parametrize("case", support.seldom(DAMAGE, OFTEN))
def test_what_is_not_is_made_again(case, mrpc, tiny_base_folder, out, capsys):
    name, damage = DAMAGE[case]
    before = _contents(out)
    damage(out / name)
    train(mrpc, tiny_base_folder, out, *ALL)
    printed = capsys.readouterr().out
    assert f"Missing or changed, so made again: {out / name.split('/')[0]}" in printed
    assert _contents(out) == before
    train(mrpc, tiny_base_folder, out, *ALL)
    assert "holds the results of this very run" in capsys.readouterr().out


def test_other_predictions_are_not_this_runs(mrpc, tiny_base_folder, out, tmp_path, capsys):
    before = _contents(out)
    other = shutil.copytree(mrpc, tmp_path / "other")
    lines = (other / "test.tsv").read_text().splitlines()
    (other / "test.tsv").write_text("\n".join(lines[:3]) + "\n")
    asked = ("--task_name=mrpc", f"--data_dir={other}", "--do_predict", f"--output_dir={out}")
    assert command(*asked, f"--base_model={tiny_base_folder}") is None
    assert f"Replaced: {out / 'MRPC.tsv'}" in capsys.readouterr().out
    assert len(json.loads((out / "run.json").read_text())["later_runs"]) == 1
    train(mrpc, tiny_base_folder, out, *ALL)
    assert f"so made again: {out / 'MRPC.tsv'}" in capsys.readouterr().out
    assert _contents(out) == before


def test_what_a_record_says_of_the_training_stays(mrpc, tiny_base_folder, tmp_path):
    """With one more action, and when a result is made again."""
    out = tmp_path / "out"
    train(mrpc, tiny_base_folder, out, *ALL[:2])
    asked = ("--task_name=mrpc", f"--data_dir={mrpc}", "--do_predict", f"--output_dir={out}")
    assert command(*asked, f"--base_model={tiny_base_folder}") is None
    first = json.loads((out / "run.json").read_text())
    assert first["train_seconds"] > 0 and len(first["later_runs"]) == 1
    for lost in ("test_results.tsv", "eval_results.txt"):
        (out / lost).unlink()
        train(mrpc, tiny_base_folder, out, *ALL[:3])
        record = json.loads((out / "run.json").read_text())
        assert record["flags"]["do_predict"] and "resumed_from_step" not in record
        for name in ("train_seconds", "examples_per_second", "later_runs"):
            assert record[name] == first[name]
        assert record["eval"] == first["eval"] and "MRPC.tsv" in record["results"]


@pytest.mark.parametrize("action", [(), ("--do_predict",)])
def test_a_command_that_does_not_evaluate_keeps_the_scores(
    action, mrpc, tiny_base_folder, tmp_path
):
    """In the record and in the adapter, which lists and cards show."""
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *ALL[:1], "--do_eval")

    def scores():
        metric = json.loads((out / "adapter" / "adapter_config.json").read_text())["metric"]
        return metric, json.loads((out / "run.json").read_text())["eval"]

    before = scores()
    train(mrpc, tiny_base_folder, out, *ALL[:1], *action)
    assert scores() == before and before[0]


def test_an_older_record_says_nothing_of_results(mrpc, tiny_base_folder, out, capsys):
    record = json.loads((out / "run.json").read_text())
    assert set(record.pop("results")) == {
        *WHOLE[:3],
        "eval_classes.tsv",
        "eval_details.json",
        "saved_model",
    }
    (out / "run.json").write_text(json.dumps(record))
    train(mrpc, tiny_base_folder, out, *ALL)
    assert "holds the results of this very run" in capsys.readouterr().out


COMMANDS = {  # sys.argv: what is said.
    "a script": (["run_classifier.py", "--a=b c"], "python run_classifier.py '--a=b c'"),
    "the command": (["/bin/adapter-bert", "analyze", "size"], "adapter-bert analyze size"),
    "its job": (["adapter-bert classify", "classify", "-x"], "adapter-bert classify -x"),
    "a module": (["/x/analysis/__main__.py", "size"], "python -m a.analysis size"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_the_command_line_is_said_as_it_was_given(case, monkeypatch):
    words, said = COMMANDS[case]
    module = types.SimpleNamespace(__spec__=types.SimpleNamespace(name="a.analysis.__main__"))
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setitem(sys.modules, "__main__", module)
    assert command_line() == said
