"""What an evaluation says of single examples, against values by hand and scikit-learn's."""

import json

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from adapter_bert_tf.data.questions.squad import Question
from adapter_bert_tf.run.result_files import write_details_file
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.task_types.details import calibration
from adapter_bert_tf.task_types.regression import MOST_POINTS
from adapter_bert_tf.task_types.spans import AROUND, SPANS, answer_details
from adapter_bert_tf.tasks import squad_metrics

CLASSES, SCORES, SETS = map(TASK_TYPES.get, ("classification", "regression", "multi_label"))


def test_calibration_by_hand():
    found = calibration(np.array([0.95, 0.91, 0.55, 0.05]), np.array([True, False, True, False]))
    filled = {i: tuple(one.values()) for i, one in enumerate(found["bins"]) if one["count"]}
    assert filled == {0: (1, 0.05, 0.0), 5: (1, 0.55, 1.0), 9: (2, 0.93, 0.5)}
    assert found["bins"][3] == {"count": 0, "probability": None, "share": None}
    assert found["error"] == pytest.approx((0.05 + 0.45 + 2 * 0.43) / 4)


def test_calibration_divides_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    stated = np.concatenate([rng.random(500), np.linspace(0, 1, 11)])
    true = rng.random(511) < stated
    bins = [one for one in calibration(stated, true)["bins"] if one["count"]]
    shares, means = calibration_curve(true, stated, n_bins=10)
    np.testing.assert_allclose([one["share"] for one in bins], shares, atol=1e-6)
    np.testing.assert_allclose([one["probability"] for one in bins], means, atol=1e-6)


def test_errors_of_classes_come_in_the_order_of_how_sure_they_were():
    predicted = np.array([[0.6, 0.4], [0.1, 0.9], [0.2, 0.8], [0.9, 0.1], [0.3, 0.7]])
    found = CLASSES.details(["no", "yes"], np.array([1, 0, 1, 1, 0]), predicted)
    assert found["errors"] == 4
    assert [error["row"] for error in found["shown"]] == [1, 3, 4, 0]  # Of 1 and 3 the first.
    assert found["shown"][0] == {
        "row": 1, "true": "no", "predicted": "yes", "probability": 0.9, "probability_of_true": 0.1
    }  # fmt: skip


def test_errors_of_any_number_of_labels_are_decisions():
    truth, predicted = np.array([[1, 0], [0, 1]]), np.array([[0.2, 0.6], [0.1, 0.9]])
    found = SETS.details(["a", "b"], truth, predicted)
    assert [(e["row"], e["true"], e["predicted"]) for e in found["shown"]] == [
        (0, "a", "not a"),
        (0, "not b", "b"),
    ]
    assert (found["errors"], found["decisions"]) == (2, 4)
    assert found["per_label"] == [
        {"label": "a", "missed": 1, "said_wrongly": 0, "right": 0},
        {"label": "b", "missed": 0, "said_wrongly": 1, "right": 1},
    ]


def test_scores_have_points_and_residuals():
    truth = np.arange(2000, dtype=np.float32)
    predicted = truth + np.where(truth == 7, 3, -0.5).astype(np.float32)
    found = SCORES.details([], truth, predicted)
    assert found["shown"][0] == {"row": 7, "true": 7.0, "predicted": 10.0}
    assert found["mean_residual"] == pytest.approx(-0.49825)
    assert len(found["points"]) == MOST_POINTS and len(found["shown"]) == 25
    assert found["points"][0] == [0.0, -0.5] and found["points"][-1] == [1999.0, 1998.5]


CONTEXT = "x" * 500 + " here " + "y" * 500


def asked(name, *answers, **more):
    return Question(name, "where", CONTEXT, tuple((a, CONTEXT.index(a)) for a in answers), **more)


def test_the_worst_answers_come_first_with_their_contexts():
    questions = [asked("a", "here"), asked("b", "here"), asked("c", impossible=True)]
    texts = {"a": "here", "b": "", "c": "xx"}
    n_best = {
        "a": [{"text": "here", "probability": 0.9}],
        "b": [{"text": "here", "probability": 0.6}, {"text": "", "probability": 0.4}],
        "c": [{"text": "xx", "probability": 0.8, "start": 3, "end": 5}],
    }
    expected = {"a": ["here"], "b": ["here", "here", "there"], "c": []}
    scores = {"a": (1, 1), "b": (0, 0), "c": (0, 0)}
    found = answer_details(questions, scores, texts, n_best, expected)
    assert (found["errors"], found["f1_counts"]) == (2, [2, *[0] * 8, 1])
    first, second = found["shown"]
    assert (first["given"], first["expected"], first["context"][1]) == ("xx", [], "xx")
    assert (second["given"], second["probability"]) == ("", 0.4)
    assert second["expected"] == ["here", "there"]  # Also one that stands elsewhere.
    before, at, after = second["context"]
    assert (len(before), at, len(after)) == (AROUND + 4, "here", AROUND + 4)
    assert before.startswith("... x") and before.endswith("x ") and after.endswith("y ...")


def articles(*answers):
    """Questions numbered from 0, each with one answer, or with none."""
    qas = [
        {"id": str(i), "answers": [{"text": a}] if a else [], "is_impossible": not a}
        for i, a in enumerate(answers)
    ]
    return [{"paragraphs": [{"qas": qas}]}]


@pytest.mark.parametrize("version_2", [False, True])
def test_the_scores_of_each_question_add_up_to_those_of_all(version_2):
    data = articles("the red cat", "a dog", *["" for _ in range(version_2)])
    said = {"0": "red", "1": "a dog", "2": ""}
    each = squad_metrics.scores_by_question(data, said, version_2)
    assert each["0"] == (0, pytest.approx(2 / 3)) and each["1"] == (1, 1)
    whole = SPANS.evaluate(data, said, version_2, {**said, "2": "x"}, dict.fromkeys(said, 0))
    for i, name in enumerate(("exact_match", "f1")):
        assert whole[name] == pytest.approx(100 * np.mean([scores[i] for scores in each.values()]))


def test_a_text_that_no_file_can_hold_is_written_and_read(tmp_path):
    write_details_file(str(tmp_path), "eval_details", "a", "dev", {"shown": ["\ud800 \x00"]})
    assert json.loads((tmp_path / "eval_details.json").read_bytes())["shown"] == ["\ud800 \x00"]
