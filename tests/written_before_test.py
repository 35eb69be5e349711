"""What an earlier version wrote loads, evaluates to the same numbers, and goes on.

`tests/golden/written_before` holds it; its README says what there is. Runs that trained with other
masks of dropout go on as well, and to other last digits; those of `runs_written_later` come to the
same weights. With ADAPTER_BERT_SAME_CPU set, on a CPU like the one that wrote them, trained weights
must also be the same to the bit.
"""

import hashlib
import json
import os
import pathlib
import shutil
import sys

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import adapter_bert_tf
from tests import processes, support
from tests.runs import ROOT, command

pytestmark = pytest.mark.long

GOLDEN = pathlib.Path(__file__).parent / "golden" / "written_before"
LATER = GOLDEN.parent / "runs_written_later"
EXPECTED, EXPECTED_LATER = (
    json.loads((folder / "expected.json").read_text()) for folder in (GOLDEN, LATER)
)
ADAPTERS, INTERRUPTED = EXPECTED["adapters"], EXPECTED["interrupted"]
# Evaluated by the command in `make test-slow` only: others go the same ways, and `AdapterModel`
# evaluates those that classify in any case.
SELDOM = (
    *("adapter_bert", "parallel", "adapter_drop", "float16", "bfloat16"),
    *("layer_norm_and_pooler", "scores_full", "kinds", "squad_full"),
    *("variation", "notrain_layer_norm", "train_pooler"),
)
PREDICTED = ("houlsby", "scores")  # By the command, too; all by `AdapterModel`.


def of_script(table, script):
    """The names of a table's rows whose command is `script`."""
    return [name for name, row in table.items() if row["script"] == script]


def cases(names):
    """The names as parameters of a test; some are left to `make test-slow`."""
    return support.seldom(names, [name for name in names if name not in SELDOM])


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy in which commands may write; their paths count from it."""
    return shutil.copytree(GOLDEN, tmp_path_factory.mktemp("written") / "before")


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    """The same of the runs that were written later."""
    return shutil.copytree(LATER, tmp_path_factory.mktemp("written") / "later")


@pytest.fixture(scope="module")
def squad(tree, later):
    """Runs most commands of `run_squad.py` in one process; what it printed, and that of later."""
    names = [name for name in of_script(ADAPTERS, "run_squad") if name not in SELDOM]
    stopped = [row["flags"] for row in INTERRUPTED.values() if row["script"] == "run_squad"]
    printed = run_squad(tree, [answering(name) for name in names] + stopped)
    return printed, run_squad(later, stopped)


def answering(name):
    """The flags that evaluate an adapter of questions, and write its answers."""
    return [*ADAPTERS[name]["flags"], "--do_predict"]


def run_squad(tree, lines):
    """Runs command lines in one process, in the tree; returns what it printed."""
    done = processes.run(
        [sys.executable, GOLDEN / "commands.py", "run_squad", json.dumps(lines)],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def results(folder):
    """The numbers of `eval_results.txt`."""
    lines = (folder / "eval_results.txt").read_text().splitlines()
    return {name: float(value) for name, value in (line.split(" = ") for line in lines)}


def assert_went_on(name, tree):
    """An interrupted run of earlier masks has done all its steps, and is near where it would be."""
    row, weights = INTERRUPTED[name], "adapter.safetensors"
    found = results(tree / "out" / name)
    assert found.keys() == row["results"].keys()
    assert found["global_step"] == row["results"]["global_step"]
    ours, theirs = (
        safetensors.numpy.load_file(tree / folder / weights)
        for folder in (f"out/{name}/adapter", f"uninterrupted/{name}")
    )
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        np.testing.assert_allclose(ours[key], value, atol=0.1, err_msg=key)


def assert_came_to_the_same(name, tree):
    """An interrupted run has come to what it comes to if nothing interrupts it."""
    row, weights = EXPECTED_LATER["interrupted"][name], "adapter.safetensors"
    assert results(tree / "out" / name) == pytest.approx(row["results"], abs=1e-5)
    found = tree / "out" / name / "adapter" / weights
    # The bias of spans moves all scores alike: its gradient is rounding, and nothing else.
    loose = ("head/bias",) if name.startswith("squad") else ()
    assert_same_weights(found, tree / "uninterrupted" / name / weights, row["sha256"], loose)


def assert_same_weights(path, before, sha256, loose=()):
    """A file of weights holds what the earlier version's holds, to the bit on the same CPU."""
    ours, theirs = safetensors.numpy.load_file(path), safetensors.numpy.load_file(before)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        most = 1e-4 if name in loose else 1e-6
        np.testing.assert_allclose(ours[name], value, 1e-5, most, err_msg=name)
    if os.environ.get("ADAPTER_BERT_SAME_CPU"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_loads(name):
    folder = GOLDEN / "adapters" / name
    saved = adapter_bert_tf.load_adapter(str(folder))
    assert saved.config == json.loads((folder / "adapter_config.json").read_text())
    stored = safetensors.numpy.load_file(folder / "adapter.safetensors")
    assert saved.weights.keys() == stored.keys()
    for key, value in stored.items():
        assert saved.weights[key].dtype == np.float32
        np.testing.assert_array_equal(saved.weights[key], value.astype(np.float32))


@pytest.mark.parametrize("name", cases(of_script(ADAPTERS, "run_classifier")))
def test_a_classifier_evaluates_alike(name, tree):
    row, out = ADAPTERS[name], tree / "again" / name
    predict = ["--do_predict"] if name in PREDICTED else []
    assert command(*row["flags"], *predict, folder=tree) is None
    assert results(out) == pytest.approx(row["results"], abs=1e-5)
    if predict:
        found = np.loadtxt(out / "test_results.tsv", ndmin=2)
        np.testing.assert_allclose(found, row["predictions"], atol=1e-5)


@pytest.mark.parametrize("name", cases(of_script(ADAPTERS, "run_squad")))
def test_answers_and_their_scores_are_the_same(name, tree, squad):
    if name in SELDOM:
        run_squad(tree, [answering(name)])
    out = tree / "again" / name
    assert results(out) == pytest.approx(ADAPTERS[name]["results"], abs=1e-5)
    assert json.loads((out / "predictions.json").read_text()) == ADAPTERS[name]["answers"]
    n_best = json.loads((out / "nbest_predictions.json").read_text())
    for question, logits in ADAPTERS[name]["best"].items():
        found = [n_best[question][0][key] for key in ("start_logit", "end_logit")]
        np.testing.assert_allclose(found, logits, atol=1e-5, err_msg=question)
    if "null_odds" in ADAPTERS[name]:
        null_odds = json.loads((out / "null_odds.json").read_text())
        assert null_odds == pytest.approx(ADAPTERS[name]["null_odds"], abs=1e-5)


def test_one_base_serves_all_adapters(tree):
    """`AdapterModel` holds all of them at once, and predicts what the command predicted."""
    model = adapter_bert_tf.AdapterModel(adapter_bert_tf.load_base(str(tree / "base")))
    encoder = adapter_bert_tf.TextEncoder(model.base.vocabulary, max_seq_length=16)
    pairs = encoder.inputs(*columns(tree / "mrpc" / "test.tsv", "\t", (3, 4)))
    singles = encoder.inputs(*columns(tree / "table" / "test.csv", ",", (0,)))
    for name, row in ADAPTERS.items():
        model.load_adapter(tree / "adapters" / name, name)
        if row["script"] == "run_classifier":
            found = model(pairs if "--task_name=mrpc" in row["flags"] else singles, adapter=name)
            found = tf.nn.softmax(found) if model.config(name)["labels"] else found
            np.testing.assert_allclose(found, row["predictions"], atol=1e-5, err_msg=name)
    assert model.list_adapters() == list(ADAPTERS)


def columns(path, delimiter, numbers):
    """Columns of a table without its header, as lists of strings."""
    rows = [line.split(delimiter) for line in path.read_text().splitlines()[1:]]
    return [[row[number] for row in rows] for number in numbers]


@pytest.mark.parametrize("name", of_script(INTERRUPTED, "run_classifier"))
def test_an_interrupted_classifier_goes_on(name, tree, later, capsys):
    for folder, expected, check in (
        (tree, EXPECTED, assert_went_on),
        (later, EXPECTED_LATER, assert_came_to_the_same),
    ):
        row = expected["interrupted"][name]
        assert command(*row["flags"], folder=folder) is None
        assert f"Resuming from step {row['step']}:" in capsys.readouterr().out
        check(name, folder)


@pytest.mark.parametrize("name", of_script(INTERRUPTED, "run_squad"))
def test_interrupted_questions_go_on(name, tree, later, squad):
    for folder, printed, expected, check in (
        (tree, squad[0], EXPECTED, assert_went_on),
        (later, squad[1], EXPECTED_LATER, assert_came_to_the_same),
    ):
        assert f"Resuming from step {expected['interrupted'][name]['step']}:" in printed
        check(name, folder)


def test_a_finished_run_is_known_as_finished(tree, capsys):
    before = times(tree / "out" / "finished")
    assert command(*EXPECTED["finished"], folder=tree) is None
    assert "holds the results of this very run" in capsys.readouterr().out
    assert times(tree / "out" / "finished") == before


def test_a_finished_sweep_is_not_trained_again(tree, capsys):
    runs = sorted((tree / "out" / "sweep").glob("seed=*"))
    before, results_before = [times(run) for run in runs], results(tree / "out" / "sweep")
    assert command(*EXPECTED["sweep"], folder=tree) is None
    printed = capsys.readouterr().out
    assert "***** Run" not in printed and "2 of 2 seeds finished" in printed
    assert [times(run) for run in runs] == before and len(runs) == 2
    assert results(tree / "out" / "sweep") == results_before


def times(folder):
    """When each file of a folder was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_run_is_repeated_from_its_record(tree, later):
    line = ["--config=out/finished/run.json", "--output_dir=out/repeated"]
    assert command(*line, folder=tree) is None  # That of other masks, to other last digits.
    assert results(tree / "out" / "repeated").keys() == results(tree / "out" / "finished").keys()
    before, out = later / "out" / "finished", later / "out" / "repeated"
    assert command(*line, folder=later) is None
    assert results(out) == pytest.approx(results(before), abs=1e-5)
    theirs = before / "adapter" / "adapter.safetensors"
    sha256 = hashlib.sha256(theirs.read_bytes()).hexdigest()
    assert_same_weights(out / "adapter" / theirs.name, theirs, sha256)
