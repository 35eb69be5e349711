"""Adapters on the same dev set: intervals, McNemar's test, the examples on which they differ."""

import csv
import json
import types

import numpy as np
import pytest

from adapter_bert_tf.analysis import compare, plots
from tests.analysis.looked import look
from tests.refusals import raises_code
from tests.runs import train

pytestmark = pytest.mark.long


def test_mcnemar_by_hand():
    """Of 10 on which one alone is right, 8 are b's: p = 2 (C(10,0) + C(10,1) + C(10,2)) / 2^10."""
    right_a = np.array([True] * 5 + [False] * 8 + [True] * 2 + [False] * 3)
    right_b = np.array([True] * 5 + [True] * 8 + [False] * 2 + [False] * 3)
    assert compare.mcnemar(right_a, right_b) == (2, 8, pytest.approx(112 / 1024))
    assert compare.mcnemar(right_a, right_a) == (0, 0, 1.0)


def test_an_interval_is_that_of_the_binomial():
    right = np.arange(400) < 300
    scores = compare.resampled_scores(lambda rows: right[rows].mean(), 400)
    low, high = compare.interval(scores)
    half = 1.96 * np.sqrt(0.75 * 0.25 / 400)
    assert (low, high) == pytest.approx((0.75 - half, 0.75 + half), abs=0.006)
    again = compare.resampled_scores(lambda rows: right[rows].mean(), 400)
    np.testing.assert_array_equal(scores, again)  # So two systems are compared on equal samples.


@pytest.fixture(scope="module")
def other(looked_at, tmp_path_factory):
    """A second run, of less training; tests must not write to it."""
    out = tmp_path_factory.mktemp("other") / "out"
    return train(looked_at.data, looked_at.base, out, "--num_train_epochs=2", "--do_eval")


def test_the_command(looked_at, other, tmp_path, capsys, monkeypatch):
    asked = (f"--adapters=long={looked_at.run}/adapter,{other}", f"--output_dir={tmp_path}/out")
    assert look("compare", looked_at, *asked) is None
    said = capsys.readouterr().out
    assert "long: accuracy" in said and f"{other} against long" in said and "McNemar" in said
    rows = list(csv.DictReader((tmp_path / "out" / "compare.csv").open()))
    for row, run in zip(rows, (looked_at.run, other), strict=True):
        scored = json.loads((run / "run.json").read_text())["eval"]["eval_accuracy"]
        assert float(row["value"]) == pytest.approx(scored, abs=1e-6)
        assert float(row["low"]) <= float(row["value"]) <= float(row["high"])
        assert row["examples"] == "16"
    (pair,) = csv.DictReader((tmp_path / "out" / "compare_pairs.csv").open())
    only_a, only_b = int(pair["only_a_right"]), int(pair["only_b_right"])
    assert (only_b - only_a) / 16 == pytest.approx(float(pair["difference"]), abs=1e-6)
    differ = list(csv.DictReader((tmp_path / "out" / "compare_examples.csv").open()))
    assert len(differ) == only_a + only_b
    for row in differ:
        assert row["long"] != row[str(other)] and row["label"] in (row["long"], row[str(other)])
        assert "dev.tsv:" in row["place"] and row["text_a"] and row["text_b"]
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    monkeypatch.setattr(
        compare, "_compute_answers", None
    )  # What was computed is not computed again.
    assert look("compare", looked_at, *asked) is None
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


REFUSED = {
    "one": ("{run}", "two or more"),
    "none": ("", "two or more"),
    "twice": ("{run},{run}", "is there twice"),
    "nothing there": ("{run},b={run}/nowhere", "nowhere"),
    "nothing there first": ("b={run}/nowhere,{run}", "nowhere"),
    "a stack of no adapter": ("a={run},b={run} --stacks=c={run}", "['c']"),
    "no stack": ("a={run},b={run} --stacks=b={run}", "--stack"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, looked_at, tmp_path):
    adapters, said = REFUSED[case]
    asked = f"--adapters={adapters.format(run=looked_at.run)}".split()
    error = look("compare", looked_at, *asked, f"--output_dir={tmp_path}/out")
    assert error and said in error and not (tmp_path / "out").exists()


UNLIKE = {  # labels, digests of two tables of the user's own: message.
    "the same": (["a", "b"], {"dev": "1"}, None),
    "labels in another order": (["b", "a"], {"dev": "1"}, "mismatch: 'b'"),
    "other columns": (["a", "b"], {"dev": "2"}, "mismatch: reads another dev set"),
}


@pytest.mark.parametrize("case", UNLIKE)
def test_adapters_that_do_not_answer_alike_are_not_compared(case):
    """Answers are numbers of labels and rows: of others they would be compared wrongly."""

    def plan(labels, digests):
        task = types.SimpleNamespace(
            labels_in_order=labels, record=lambda: {"data_sha256": digests}
        )
        return types.SimpleNamespace(only_task=task)

    labels, digests, message = UNLIKE[case]
    first, other = plan(["a", "b"], {"dev": "1"}), plan(labels, digests)
    if message is None:
        compare._check_same(first, other, "other")
        return
    with raises_code(message):
        compare._check_same(first, other, "other")


def test_the_picture():
    rows = [["a $x$", "mcc", 0.5, 0.4, 0.6, 1234], ["b" * 60, "mcc", 0.7, 0.6, 0.8, 1234]]
    axes = plots.draw_intervals("task", rows).axes[0]
    assert "mcc" in axes.get_xlabel() and "n = 1,234" in axes.get_xlabel()
    assert [text.get_text() for text in axes.texts] == ["0.500", "0.700"]
